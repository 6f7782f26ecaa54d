"""A copy of what a gateway keeps, taken while it runs: whole, private and marked, or not there at all."""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ipc.operations.evidence import ReadCheckpoint
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.settings import LedgerSettings, Settings
from notary import checkpoint_file
from notary.checkpoints import RolledBack
from notary.opening import open_state
from notary.programs import backup
from notary.programs.backup import NotBackedUp, back_up, main
from tests.notary.running import Running, settings_in, stored
from tests.notary.samples import changed, record_call
from tests.support.standard_input import standard_input

KEYS = {f"keys/{name}.pem" for name in ("lease", "grant", "receipt", "checkpoint")}
STATE = {"ledger.sqlite3", "checkpoints", "checkpoint-keys.jwks.json", "lease-keys.jwks.json", "backup.json"}
WITHOUT_KEYS = STATE | {"receipt-keys.jwks.json"}


def names(folder: Path) -> set[str]:
    """Files, as they are named from here."""
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def checkpointed(notary: Running) -> int:
    """Leaves of a ledger with a call and a checkpoint."""
    record_call(notary.front)
    size: int = notary.front.ask(ReadCheckpoint()).size
    return size


def run(settings: Settings, *arguments: object) -> int:
    """The program in this process."""
    with standard_input(msgspec.json.encode(settings)):
        return main([*map(str, arguments)])


@pytest.fixture
def no_umask() -> Iterator[None]:
    """Clear the umask: every file keeps the mode that it is created with."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_it_has_what_a_gateway_keeps_for_its_owner_alone_and_says_what_it_is(notary: Running, tmp_path: Path) -> None:
    size, target = checkpointed(notary), tmp_path / "kept"
    newest = notary.last_event()["timestamp"]
    told = back_up(notary.settings, target, with_keys=True)
    assert told == (
        f"{target} has the ledger with {size} leaves, the newest event of {newest}. "
        f"Signing keys are in {target / 'keys'}: keep it as you keep them."
    )
    assert names(target) == WITHOUT_KEYS | KEYS
    modes = {(one.is_dir(), stat.S_IMODE(one.stat().st_mode)) for one in (target, *target.rglob("*"))}
    assert modes == {(True, 0o700), (False, 0o600)}
    said = json.loads((target / "backup.json").read_bytes())
    digests = {
        name: f"sha256:{hashlib.sha256((target / name).read_bytes()).hexdigest()}"
        for name in names(target) - {"backup.json"}
    }
    assert said.pop("taken_at") > "2026"
    assert said == {
        "gateway_version": notary.settings.version, "leaves": size, "newest_event": newest, "with_keys": True,
        "files": digests,
    }  # fmt: skip
    assert [one for one in tmp_path.iterdir() if "partial" in one.name] == []


def test_keys_come_along_when_they_are_asked_for_and_not_otherwise(notary: Running, tmp_path: Path) -> None:
    told = back_up(notary.settings, tmp_path / "kept", with_keys=False)
    assert told == f"{tmp_path / 'kept'} has the ledger with 0 leaves. Signing keys are not in it."
    assert names(tmp_path / "kept") == WITHOUT_KEYS - {"checkpoints"}
    said = json.loads((tmp_path / "kept" / "backup.json").read_bytes())
    assert (said["with_keys"], said["newest_event"]) == (False, None)


def test_keys_that_a_gateway_of_tests_has_nowhere_are_no_part_of_it(notary: Running, tmp_path: Path) -> None:
    nowhere = changed(
        notary.settings, lease_signing_key_path=None, grant_signing_key_path=None, receipt_signing_key_path=None,
        receipt_keys_jwks_path=None,
    )  # fmt: skip
    back_up(nowhere, tmp_path / "kept", with_keys=True)
    assert names(tmp_path / "kept") == STATE - {"checkpoints"}


def test_the_backup_has_the_checkpoints_that_the_copied_ledger_continues(notary: Running, tmp_path: Path) -> None:
    size = checkpointed(notary)
    path = notary.folder / checkpoint_file.FILE_NAME
    *_, note = [json.loads(line)["note"] for line in path.read_text().splitlines()]
    continued = path.read_bytes()
    checkpoint_file.append(path, "2026-11-23T05:00:00.000Z", note.replace(f"\n{size}\n", f"\n{size + 1}\n"))
    checkpoint_file.append(path, "2026-11-23T05:00:00.000Z", "no note")
    with path.open("ab") as file:
        file.write(b'{"time":"half')
    back_up(notary.settings, tmp_path / "kept", with_keys=False)
    assert (tmp_path / "kept" / "checkpoints").read_bytes() == continued


def test_the_key_of_checkpoints_is_the_one_beside_that_of_receipts(notary: Running, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "grant.pem"
    elsewhere.parent.mkdir()
    (notary.folder / "keys" / "grant.pem").rename(elsewhere)
    back_up(changed(notary.settings, grant_signing_key_path=str(elsewhere)), tmp_path / "kept", with_keys=True)
    for name in ("receipt.pem", "checkpoint.pem"):
        assert (tmp_path / "kept" / "keys" / name).read_bytes() == (notary.folder / "keys" / name).read_bytes()
    assert names(tmp_path / "kept") >= KEYS


@pytest.mark.parametrize("is_old", [False, True])
def test_learned_rules_are_copied_from_their_present_or_else_their_former_place(
    notary: Running, tmp_path: Path, is_old: bool
) -> None:
    (notary.folder / "learned.json").write_bytes(b"before")
    fronts = Path(notary.settings.fronts_folder)
    fronts.mkdir(exist_ok=True)
    if not is_old:
        (fronts / "learned.json").write_bytes(b"now")
    back_up(notary.settings, tmp_path / "kept", with_keys=False)
    assert (tmp_path / "kept" / "learned.json").read_bytes() == (b"before" if is_old else b"now")


def test_a_gateway_started_from_a_backup_is_refused_until_the_rollback_is_accepted(
    notary: Running, tmp_path: Path
) -> None:
    checkpointed(notary)
    back_up(notary.settings, tmp_path / "kept", with_keys=True)
    notary.stop()
    (taken_at,) = stored(tmp_path / "kept" / "ledger.sqlite3", "SELECT value FROM meta WHERE key = 'backup'")
    assert taken_at.startswith("20"), "what any version looks for"
    with pytest.raises(RolledBack, match=f"the ledger is a backup of {taken_at}"):
        open_state(settings_in(tmp_path / "kept"))
    open_state(notary.settings)[0].database.close()  # the original is not a backup


def test_an_existing_backup_is_not_overwritten(
    notary: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").symlink_to("nowhere")
    with pytest.raises(NotBackedUp, match="is there already; nothing was written"):
        back_up(notary.settings, tmp_path / "kept", with_keys=False)
    assert run(notary.settings, tmp_path / "kept") == Exit.CONFIG
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "kept").is_symlink()


def test_the_program_says_what_it_made(notary: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(notary.settings, tmp_path / "kept", "--with-keys") == Exit.OK
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'kept'} has the ledger with 0 leaves")
    assert names(tmp_path / "kept") >= KEYS


def test_one_that_fails_leaves_nothing_and_says_why(
    notary: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    nowhere = changed(notary.settings, ledger=LedgerSettings(path=str(tmp_path / "none.sqlite3")))
    assert run(nowhere, folder / "kept") == Exit.UNAVAILABLE
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'none.sqlite3'} could not be copied to {folder / 'kept'}: ")
    keys = Path(notary.settings.receipt_keys_jwks_path or "")
    aside = keys.rename(tmp_path / "aside")
    keys.mkdir()
    assert run(notary.settings, folder / "kept") == Exit.UNAVAILABLE
    assert capsys.readouterr().err == f"{keys} could not be copied to {folder / 'kept'}: Is a directory\n"
    keys.rmdir()
    aside.rename(keys)
    (notary.folder / "keys" / "grant.pem").unlink()
    assert run(notary.settings, folder / "kept", "--with-keys") == Exit.NO_PERMISSION
    assert "grant.pem: cannot read it" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_the_reason_of_a_failure_is_reported_even_if_the_cleanup_fails(
    notary: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_away(folder: Path, *_: object, **__: object) -> None:
        folder.rename(tmp_path / "elsewhere")
        raise PrivateFileError("the disk went away", Exit.NO_PERMISSION)

    monkeypatch.setattr(backup, "_manifest", taken_away)
    with pytest.raises(PrivateFileError, match="the disk went away"):
        back_up(notary.settings, tmp_path / "kept", with_keys=False)
