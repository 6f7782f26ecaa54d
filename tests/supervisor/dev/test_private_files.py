"""Files for their owner alone: whole or not at all, kept once they are there."""

import stat
from pathlib import Path

import pytest

from supervisor.dev.private_files import check_can_write, keep_private, write_private


def test_a_file_is_written_whole_and_private_over_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "x").symlink_to(tmp_path / "victim")
    write_private(tmp_path / "x", "new")
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "x").is_symlink()


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        write_private(tmp_path / "folder", "new")
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_a_check_whether_it_can_be_written_shows_no_file(tmp_path: Path) -> None:
    check_can_write(tmp_path / "x")
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        check_can_write(tmp_path / "missing" / "x")
    with pytest.raises(IsADirectoryError):
        check_can_write(tmp_path)


def test_a_kept_file_is_made_once(tmp_path: Path) -> None:
    assert keep_private(tmp_path / "x", lambda: "first") == "first"
    assert keep_private(tmp_path / "x", lambda: "second") == "first"
