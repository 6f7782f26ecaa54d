"""The folder of a witness: whole files, private, and nothing believed that is damaged."""

from pathlib import Path

import pytest

from ipc.keys.verifier_keys import WITNESS, read_verifier_key
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from witness.folder import (
    KEY_FILE,
    LOGS,
    CosignedTree,
    held,
    make_key,
    read_key,
    read_records,
    record_file,
    write_record,
)

RECORD = CosignedTree("log.example/a", 7, "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=", "note")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with held(tmp_path / "w"):
        return tmp_path / "w"


def test_a_key_is_private_and_read_as_it_was_made(folder: Path) -> None:
    assert read_key(folder) is None
    made = make_key(folder, "witness.example/w")
    key = read_key(folder)
    assert key is not None
    assert (key.public, key.name) == (made.public, "witness.example/w")
    assert read_verifier_key(made.public.text, WITNESS) == made.public
    assert (folder / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\n"])
def test_a_name_that_no_note_can_have_makes_no_key(folder: Path, name: str) -> None:
    with pytest.raises(PrivateFileError, match="--name"):
        make_key(folder, name)
    assert read_key(folder) is None


def test_a_key_that_is_damaged_or_open_to_others_is_refused(folder: Path) -> None:
    make_key(folder, "witness.example/w")
    path = folder / KEY_FILE
    whole = path.read_text()
    for damaged in ("", "x", whole.replace("witness", "wit"), whole[:-9] + "\n", whole.replace("PRIVATE", "PUBLIC")):
        path.write_text(damaged)
        with pytest.raises(PrivateFileError, match="damaged"):
            read_key(folder)
    path.write_text(whole)
    path.chmod(0o644)
    with pytest.raises(PrivateFileError, match="lets others in"):
        read_key(folder)


def test_a_record_is_read_as_it_was_written_and_only_that_of_its_log(folder: Path) -> None:
    write_record(folder, RECORD)
    assert read_records(folder, [RECORD.origin, "log.example/b"]) == {RECORD.origin: RECORD}


@pytest.mark.parametrize(
    "damaged", [b"", b"{}", b"\xff", b'{"origin":"log.example/a","size":7,"root":"x","note":"n"}',
                b'{"origin":"log.example/b","size":7,"root":"CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=","note":"n"}',
                b'{"origin":"log.example/a","size":-7,"root":"CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=","note":""}'],
)  # fmt: skip
def test_a_record_that_is_damaged_is_not_taken_for_a_log_that_was_never_seen(folder: Path, damaged: bytes) -> None:
    write_record(folder, RECORD)
    record_file(folder, RECORD.origin).write_bytes(damaged)
    with pytest.raises(PrivateFileError, match="damaged"):
        read_records(folder, [RECORD.origin])


def test_a_second_process_is_kept_out(folder: Path) -> None:
    with held(folder), pytest.raises(PrivateFileError) as refused, held(folder):
        pass
    assert refused.value.exit_code == Exit.LOCKED


@pytest.mark.parametrize("hidden", [KEY_FILE, LOGS])
def test_a_folder_that_others_may_look_into_is_refused(folder: Path, hidden: str) -> None:
    make_key(folder, "witness.example/w")
    (folder / hidden).chmod(0o755)
    folder.chmod(0o755)
    with pytest.raises(PrivateFileError, match="lets others in") as refused, held(folder):
        pass
    assert refused.value.exit_code == Exit.CONFIG
