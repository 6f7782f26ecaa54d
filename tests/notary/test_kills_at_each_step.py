"""A notary that is killed at each step of what reaches its disk, or whose disk fails there: the next one goes on.

Steps are the system calls that reach the database, its log and the file of checkpoints: a unit's commit, settling
(rows, leaves, tiles), the line of a checkpoint, its row, the end. strace delivers the kill, so that the notary has no
code for it."""

import json
import random
import shutil
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.operations.calls import Closed
from ipc.operations.evidence import ReadCheckpoint
from ipc.operations.intents import ListUnresolved
from ipc.operations.operation import Operation
from ipc.process.exits import Exit
from ipc.settings import Settings
from notary import checkpoint_file
from notary.programs.offline import main
from notary.tree.checkpoint import Checkpoint, parted
from tests.notary.running import ForkedNotary, Running, settings_in, stored
from tests.notary.samples import make_hold, make_note, make_open
from tests.support.asking import Asker
from tests.support.played_workers import Workers
from tests.support.strace import injected

BEFORE = 2
"""Events that are there at first."""
EVENTS = 6
"""Those of `operations`."""
FLUSHES, LINES = "fdatasync,fsync", "write,ftruncate"
SOME_WRITES = 8


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a notary that has ended."""
    notary = Running(tmp_path_factory.mktemp("before") / "state")
    for _ in range(BEFORE):
        notary.front.ask(make_note())
    notary.close()
    return notary.folder


class Lives:
    """One folder and the notaries that live on it, one after the other; one front that outlives them."""

    def __init__(self, before: Path, folder: Path, workers: Workers) -> None:
        self.folder = shutil.copytree(before, folder)
        self.ledger = folder / "ledger.sqlite3"
        self.checkpoints = folder / checkpoint_file.FILE_NAME
        self._workers = workers
        self.settings: Settings = settings_in(folder)
        self.asked: dict[int, Operation[Any]] = dict(enumerate(operations(), 1))
        self.heard: dict[int, Any] = {}

    def start(self) -> tuple[ForkedNotary, Asker]:
        """The next notary. It is never refused."""
        process = ForkedNotary(self.settings, self._workers)
        process.ready()
        return process, process.attach("front-that-lives-on")

    def ask(self, front: Asker) -> None:
        """All that was not answered yet, one after the other. Raises what a channel raises once the notary is gone."""
        for number, operation in self.asked.items():
            if number not in self.heard:
                front.resend({number: operation})
                self.heard[number] = front.answer(number)

    def sizes(self) -> list[int]:
        """The sizes of the checkpoints in the file."""
        lines = [json.loads(line) for line in self.checkpoints.read_text().splitlines()]
        return [Checkpoint.parse(parted(line["note"])[0]).size for line in lines]


def operations() -> list[Operation[Any]]:
    """Calls, an event, a hold; a checkpoint in between."""
    return [make_open(), make_open(), make_note(), make_hold(), ReadCheckpoint(), make_open(), make_note()]


def lived_until(lives: Lives, calls: str, when: int) -> bool:
    """One life that is killed at the `when`th of these system calls; False when it comes to its own end before."""
    process, front = lives.start()
    paths = [lives.ledger, lives.ledger.with_name("ledger.sqlite3-wal"), lives.checkpoints]
    with injected(process.process.pid, calls, f"signal=KILL:when={when}", lives.folder, paths):
        try:
            lives.ask(front)
            return process.stop() != 0
        except (ChannelClosed, FrameError, OSError):
            process.end()
            return True
        finally:
            front.close()


def check_whole(lives: Lives) -> None:
    """The next notary gives the answers that are missing, and everything is there once."""
    process, front = lives.start()
    lives.ask(front)
    assert front.ask(ListUnresolved(5)) == []
    front.close()
    assert process.stop() == 0
    answered = {answer.receipt_id for answer in lives.heard.values() if isinstance(answer, Closed)}
    assert set(stored(lives.ledger, "SELECT receipt_id FROM receipts")) == answered
    assert stored(lives.ledger, "SELECT count(*) FROM events") == [BEFORE + EVENTS]
    sizes = lives.sizes()
    assert sizes == sorted(sizes)
    assert sizes[-1] == BEFORE + EVENTS + len(answered)
    keys = lives.folder / "receipt-keys.jwks.json"
    with redirect_stdout(StringIO()) as said:
        code = main([str(lives.ledger), "--keys", str(keys), "--checkpoint", str(lives.checkpoints)])
    assert (code, f"continues {len(sizes)} checkpoint" in said.getvalue()) == (Exit.OK, True), said.getvalue()


@pytest.mark.parametrize("calls", [FLUSHES, LINES])
def test_a_notary_killed_at_any_step_is_followed_by_one_that_lost_nothing(
    before: Path, tmp_path: Path, workers: Workers, calls: str
) -> None:
    when = 1
    while True:
        lives = Lives(before, tmp_path / str(when), workers)
        was_killed = lived_until(lives, calls, when)
        check_whole(lives)
        if not was_killed:
            break
        when += 1
    assert when > (8 if calls == FLUSHES else 2)


def test_a_notary_killed_at_any_page_that_it_writes_is_followed_by_one_that_lost_nothing(
    before: Path, tmp_path: Path, workers: Workers
) -> None:
    chance = random.Random()
    killed = 0
    for number in range(SOME_WRITES):
        lives = Lives(before, tmp_path / str(number), workers)
        killed += lived_until(lives, "pwrite64", 1 + chance.randrange(150))
        check_whole(lives)
    assert killed


@pytest.mark.parametrize(("calls", "fault"), [
    ("write", "error=ENOSPC"), ("write", "retval=9"), ("fdatasync", "error=EIO"),
])  # fmt: skip
def test_a_disk_that_fails_at_the_line_of_a_checkpoint_stops_no_call_and_spoils_no_line(
    before: Path, tmp_path: Path, workers: Workers, calls: str, fault: str
) -> None:
    lives = Lives(before, tmp_path / "state", workers)
    process, front = lives.start()
    with injected(process.process.pid, calls, fault, lives.folder, [lives.checkpoints]):
        front.ask(make_note())
        assert front.ask(ReadCheckpoint()).size == BEFORE, "the one of before"
    front.close()
    assert process.stop() == 0
    sizes = lives.sizes()
    assert sizes == sorted(sizes)
    assert sizes[-1] == BEFORE + 1
