"""Going on from a ledger that does not continue its last checkpoint, because an operator says why."""

import errno
import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from ipc.operations.calls import ProofRecord, UseProof
from ipc.operations.evidence import ReadCheckpoint
from ipc.operations.leases import ReadEpoch
from ipc.process.exits import Exit
from ipc.settings import LedgerSettings, Settings, StoreSettings
from notary import checkpoint_file
from notary.programs.accept_rollback import accept, main
from notary.programs.accepting import NothingToAccept
from supervisor.programs import INTERPRETER
from tests.notary.running import ROOT, Running, query, walk
from tests.notary.samples import NOW, changed
from tests.notary.test_checkpoints import file_of, grow, notes, older
from tests.support.standard_input import standard_input

REASON = "the disk died"


def run(settings: bytes) -> "subprocess.CompletedProcess[str]":
    """The program, as the supervisor runs it."""
    return subprocess.run(
        [*INTERPRETER, "notary.programs.accept_rollback", "--reason", REASON], input=settings.decode(),
        capture_output=True, text=True, timeout=300, check=False, cwd=ROOT,
    )  # fmt: skip


def run_here(settings: Settings) -> int:
    """The program in this process."""
    with standard_input(msgspec.json.encode(settings)):
        return main(["--reason", REASON])


def lost(notary: Running) -> int:
    """An earlier copy lies there; how many leaves were lost."""
    grow(notary)
    put_back = older(notary)
    grow(notary)
    notary.stop()
    put_back()
    return 9


def test_it_leaves_an_event_ends_every_lease_and_keeps_the_earlier_file(notary: Running) -> None:
    lost(notary)
    before = notes(notary)
    told = accept(notary.settings, REASON)
    assert "it was cut, or an earlier copy was put back" in told
    front = notary.start()
    (event,) = [json.loads(one) for one in query(front, event_type="RollbackAccepted")]
    assert event["reason"].startswith(f"{REASON} (the ledger has 9 leaves, and at ")
    assert (event["principal"], event["decision"], event["change"]["size"]) == ("gateway", "allow", 9)
    assert event["change"].keys() == {"previous_epoch", "current_epoch", "size"}
    assert front.ask(ReadEpoch()) == event["change"]["current_epoch"] > 1_700_000_000
    (kept,) = notary.folder.glob("checkpoints.until-*")
    assert [json.loads(line)["note"] for line in kept.read_text().splitlines()] == before
    assert walk(front).intact
    assert front.ask(UseProof(ProofRecord("p", NOW))).is_fresh


def test_where_nothing_was_lost_there_is_nothing_to_accept(notary: Running) -> None:
    grow(notary)
    notary.stop()
    kept = file_of(notary).read_bytes()
    with pytest.raises(NothingToAccept):
        accept(notary.settings, REASON)
    assert run_here(notary.settings) == Exit.CONFIG
    assert file_of(notary).read_bytes() == kept


def test_the_program_says_what_it_did_and_a_second_run_does_nothing(notary: Running) -> None:
    lost(notary)
    given = msgspec.json.encode(notary.settings)
    done = run(given)
    assert (done.returncode, done.stdout[:9]) == (Exit.OK, "Accepted:")
    again = run(given)
    assert again.returncode == Exit.CONFIG
    assert "nothing to accept" in again.stderr


def test_one_that_was_killed_after_its_event_is_done_by_another(notary: Running) -> None:
    lost(notary)
    kept = file_of(notary).read_bytes()
    accept(notary.settings, REASON)
    for path in notary.folder.glob("checkpoints*"):
        if path.name.startswith("checkpoints.until") or path == file_of(notary):
            path.unlink()
    file_of(notary).write_bytes(kept)
    assert accept(notary.settings, REASON).startswith("Accepted:")
    front = notary.start()
    assert len(query(front, event_type="RollbackAccepted")) == 2
    assert walk(front).intact


def test_nothing_is_accepted_without_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == Exit.USAGE
    assert "--reason" in capsys.readouterr().err


def test_a_failed_look_is_reported_by_its_exit_code(
    notary: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost(notary)
    nowhere = changed(notary.settings, ledger=LedgerSettings(path=str(tmp_path / "none" / "ledger.sqlite3")))
    assert run_here(nowhere) == Exit.UNAVAILABLE
    assert run_here(changed(notary.settings, store=StoreSettings(redis_url="gopher://host"))) == Exit.CONFIG
    key = notary.folder / "keys" / "grant.pem"
    key.chmod(0o644)
    capsys.readouterr()
    assert run_here(notary.settings) == Exit.CONFIG
    assert capsys.readouterr().err == f"{key}: mode 0644 lets others in. Use chmod 0600.\n"
    key.unlink()
    assert run_here(notary.settings) == Exit.NO_PERMISSION


def test_where_no_checkpoint_can_be_signed_the_next_start_signs_it(
    notary: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost(notary)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_file, "append", full)
        assert run_here(notary.settings) == Exit.UNAVAILABLE
    assert "could not be signed; the next start tries again" in capsys.readouterr().err
    assert notary.start().ask(ReadCheckpoint()).size == 10
    assert walk(notary.front).intact
