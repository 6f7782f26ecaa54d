"""The files that workers reach, and that they leave where something else takes the place of what they may open."""

from pathlib import Path

from ipc import messages as m
from ipc.exits import Exit
from ipc.walls.places import homes, kept
from tests.support.worker_template import template
from workers.sandbox.places import Standing, files_place


def test_a_file_that_is_changed_is_the_same_and_one_that_is_replaced_is_not(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.1\n")
    standing = Standing(str(file))
    file.write_text("nameserver 192.0.2.2\n")
    assert not standing.has_gone()
    (tmp_path / "new").write_text("nameserver 192.0.2.3\n")
    (tmp_path / "new").rename(file)
    assert standing.has_gone()
    assert not Standing(None).is_watched
    assert not Standing(None).has_gone()


def test_an_idle_worker_leaves_when_another_folder_takes_the_place_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    with template(folder, files_dir=str(tmp_path / "files")) as running:
        running.load(m.ModuleFile("builtin:echo", None, ()))
        worker = running.born("fs")
        (tmp_path / "files").rename(tmp_path / "away")
        (tmp_path / "files").mkdir()
        assert running.exit_status(worker) == Exit.RECYCLED


def test_the_folder_of_files_is_made_where_it_is_missing(tmp_path: Path) -> None:
    assert files_place(str(tmp_path / "a" / "b")).path == str(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_a_configured_folder_that_is_not_there_yet_is_reached_by_the_one_above(tmp_path: Path) -> None:
    assert {one.path for one in homes([str(tmp_path / "later" / "list")])} == {str(tmp_path)}
    assert {one.path for one in kept([str(tmp_path / "later")])} == {str(tmp_path)}
