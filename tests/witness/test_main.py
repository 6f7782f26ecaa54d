"""The arguments of a witness that are refused before it serves."""

from pathlib import Path

import pytest

from ipc.process.exits import Exit
from notary.tree.checkpoint import NoteRefused
from witness.main import main, read_logs


def test_a_name_other_than_that_of_the_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["key", "--state", str(tmp_path / "w")]
    assert main([*words, "--name", "witness.example/w"]) == Exit.OK
    assert main([*words, "--name", "other"]) == Exit.CONFIG
    assert "witness.example/w" in capsys.readouterr().err


def test_files_that_name_no_log_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "log.keys"
    empty.write_text("# none\n\n")
    with pytest.raises(NoteRefused, match="name no log"):
        read_logs([empty])
