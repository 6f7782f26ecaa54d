"""The files that workers reach, and that they leave where something else takes the place of what they may open."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ipc.messages.modules import ModuleFile
from ipc.process.exits import Exit
from ipc.settings import Settings
from ipc.walls.places import homes, kept
from ipc.walls.privileges import User
from supervisor.children.walls import find_walls
from tests.support.worker_plans import write_plan
from tests.support.worker_template import template
from workers.sandbox.places import WalledPaths, files_place, owner_of_files


def test_a_file_that_is_changed_is_the_same_and_one_that_is_replaced_is_not(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 192.0.2.1\n")
    standing = WalledPaths(str(file))
    file.write_text("nameserver 192.0.2.2\n")
    assert not standing.has_gone()
    (tmp_path / "new").write_text("nameserver 192.0.2.3\n")
    (tmp_path / "new").rename(file)
    assert standing.has_gone()
    assert not WalledPaths(None).is_watched
    assert not WalledPaths(None).has_gone()


def test_an_idle_worker_leaves_when_another_folder_takes_the_place_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    with template(folder, files_dir=str(tmp_path / "files")) as running:
        running.load(ModuleFile("builtin:echo", None, ()))
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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may pass through; pytest's own may not."""
    with tempfile.TemporaryDirectory(prefix="gateway-files-") as name:
        os.chmod(name, 0o711)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or give a folder away")
@pytest.mark.parametrize("is_given", [True, False])
def test_a_worker_of_root_is_the_user_that_its_folder_was_given_to(
    tmp_path: Path, open_folder: Path, is_given: bool
) -> None:
    given = find_walls(Settings(state_dir=str(tmp_path), public_base_url="http://h"))
    assert given.user is not None
    files = open_folder / "files"
    files.mkdir(0o700)
    uid = given.user.uid if is_given else 0
    os.chown(files, uid, -1)
    with template(tmp_path, files_dir=str(files), walls=given) as running:
        running.load(ModuleFile("builtin:file_write", None, ("fs",)))
        worker = running.born("fs")
        assert set(psutil.Process(worker.pid).uids()) == {uid}
        assert worker.call(write_plan(files, "note.txt", "hello")).outcome == "success"
    assert (files / "note.txt").read_text() == "hello"
    assert (files / "note.txt").stat().st_uid == uid


def test_a_folder_of_another_user_does_not_change_the_workers_user(tmp_path: Path) -> None:
    assert owner_of_files(str(tmp_path), User(os.getuid() + 1, 0)) is None
    assert owner_of_files(str(tmp_path / "missing"), User(os.getuid(), 0)) is None
    assert owner_of_files(str(tmp_path), None) is None
