"""`gateway ledger seal` while the notary still has to cut the ledger for a command that was killed."""

import argparse
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from ipc.process.clock import iso
from ipc.process.exits import Exit
from supervisor.commands.inspect import sealing
from supervisor.refusal import Refused
from tests.notary.running import Running
from tests.notary.samples import NOW
from tests.notary.sealing.sealed_ledger import AGE, asked, copied_age, keys_of, verify


class PlayedSupervisor:
    """Passes questions on to a notary in their order, behind those that it has not done yet."""

    def __init__(self, notary: Running, waiting: list[str]) -> None:
        self._notary = notary
        self._waiting = waiting
        self.is_silent = False

    def ask(self, _: Path, word: str, **more: str) -> Mapping[str, object]:
        if word != "seal":
            return {}
        if self.is_silent:
            return {"left": 0, "problem": "the notary has not answered", "is_refused": False}
        while self._waiting:
            asked(self._notary, self._waiting.pop(0))
        told = asked(self._notary, more["sealed"])
        return {"left": told.left, "problem": told.problem, "is_refused": told.is_refused}


class Command:
    """The command `gateway ledger seal`, and a segment that the notary was asked to cut off before."""

    def __init__(self, notary: Running, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "segments"
        earlier = copied_age(notary, self.folder)
        self.earlier = earlier.segment.path
        self.supervisor = PlayedSupervisor(notary, [msgspec.json.encode(earlier.sealed).decode()])
        parser = argparse.ArgumentParser()
        sealing.add_seal(parser.add_subparsers())
        before = iso(NOW + 2 * AGE)
        self._options = parser.parse_args(["seal", "--before", before, "--out", str(self.folder)])
        monkeypatch.setattr(sealing, "named_settings", lambda _: notary.settings)
        monkeypatch.setattr(sealing, "run_alone", is_locked)
        monkeypatch.setattr(sealing, "ask_gateway", self.supervisor.ask)

    def run(self) -> int:
        return int(self._options.run(self._options))


def is_locked(*_: object) -> str:
    raise Refused(Exit.LOCKED, "the gateway runs.")


@pytest.fixture
def command(notary: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(notary, tmp_path, monkeypatch)


def test_the_segment_of_an_earlier_cut_stays(notary: Running, command: Command, tmp_path: Path) -> None:
    assert command.run() == Exit.OK
    notary.stop()
    ran = verify(notary.path, "--segments", command.folder, "--keys", keys_of(notary, tmp_path / "keys.json"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert command.earlier.exists()
    assert len(list(command.folder.iterdir())) == 2


def test_nothing_is_copied_or_removed_while_the_notary_does_not_answer(command: Command) -> None:
    command.supervisor.is_silent = True
    with pytest.raises(Refused, match="can't be sealed now: the notary has not answered"):
        command.run()
    assert list(command.folder.iterdir()) == [command.earlier]
