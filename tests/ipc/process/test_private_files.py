"""Private files: whole or not there, ours alone or refused, in sentences that say what to do."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from ipc.process.private_files import (
    PrivateFileError,
    check_folder,
    check_private,
    hold_folder,
    make_folder,
    read_private,
    write_private,
)


def somebody_elses(folder: Path) -> Path:
    """A regular file that does not belong to the user that runs the tests."""
    if os.geteuid() != 0:
        return Path("/etc/passwd")
    path = folder / "theirs"
    path.write_bytes(b"x")
    path.chmod(0o600)
    os.chown(path, 65534, 65534)
    return path


def test_a_written_file_is_readable_by_its_owner_alone_under_any_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for umask in (0o000, 0o077, 0o177):
        old = os.umask(umask)
        try:
            write_private(path, b"content %d" % umask)
        finally:
            os.umask(old)
        assert read_private(path) == b"content %d" % umask
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601, 0o666])
def test_a_file_that_others_may_touch_is_refused_with_its_mend(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "file"
    write_private(path, b"secret")
    path.chmod(mode)
    with pytest.raises(PrivateFileError, match=rf"file: mode {mode:04o} lets others in\. Use chmod 0600\.$") as refused:
        read_private(path)
    assert refused.value.exit_code == Exit.CONFIG


def test_a_file_that_only_its_owner_may_read_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private(path, b"secret")
    path.chmod(0o400)
    assert read_private(path) == b"secret"


def test_a_file_of_another_user_is_refused_also_through_a_link(tmp_path: Path) -> None:
    theirs = somebody_elses(tmp_path)
    link = tmp_path / "link"
    link.symlink_to(theirs)
    for path in (theirs, link):
        with pytest.raises(PrivateFileError, match="belongs to user id") as refused:
            read_private(path)
        assert refused.value.exit_code == Exit.NO_PERMISSION


def handed(tmp_path: Path, content: bytes = b"secret") -> Path:
    """A file as Kubernetes mounts it: a link through `..data`, which is swapped; mode 0440."""
    folder = tmp_path / "..2026_01"
    folder.mkdir()
    (folder / "file").write_bytes(content)
    (folder / "file").chmod(0o440)
    (tmp_path / "..data").symlink_to("..2026_01")
    (tmp_path / "file").symlink_to("..data/file")
    return tmp_path / "file"


def test_a_group_may_read_what_kubernetes_or_systemd_hands_over_and_nothing_else_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, credential = handed(tmp_path), tmp_path / "credential"
    credential.write_bytes(b"secret")
    credential.chmod(0o440)
    assert read_private(path) == b"secret"
    with pytest.raises(PrivateFileError, match="mode 0440"):
        read_private(credential)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_private(credential) == b"secret"
    for file in (path, credential):
        for mode in (0o460, 0o444, 0o442, 0o441):
            file.chmod(mode)
            with pytest.raises(PrivateFileError, match=f"mode {mode:04o}"):
                read_private(file)


def status(uid: int, mode: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, uid, 0, 0, 0, 0, 0))


def test_a_file_of_root_is_private_to_the_user_who_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    path = tmp_path / "lease.pem"
    for mode in (0o400, 0o440, 0o600, 0o640):
        check_private(path, status(0, mode))
    for mode in (0o404, 0o444, 0o460, 0o660, 0o644):
        with pytest.raises(PrivateFileError, match=f"mode {mode:04o}"):
            check_private(path, status(0, mode))
    with pytest.raises(PrivateFileError, match="mode 0440"):
        check_private(path, status(4711, 0o440))
    for uid in (4712, 65534):
        with pytest.raises(PrivateFileError, match=f"belongs to user id {uid}"):
            check_private(path, status(uid, 0o400))


BEHIND_WALLS = """
import os, sys
from pathlib import Path
from ipc.process.private_files import PrivateFileError, read_private
from ipc.walls.confining import Confinement, Walls
from ipc.walls.given import USER_NAMESPACE, Given
noted, other = sys.argv[1:]
os.setgroups([]); os.setgid(4711); os.setuid(4711)
walls = Walls(b"", has_files=True, checks_owners=True, private_files=(noted,), namespaces=frozenset({USER_NAMESPACE}))
Confinement(walls, Given()).confine()
for path in (noted, other):
    try:
        print(read_private(Path(path)).decode())
    except PrivateFileError as error:
        print(error.exit_code.name)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("folder_mode", "said"), [(0o755, "secret"), (0o1777, "secret"), (0o777, "NO_PERMISSION")])
def test_in_a_user_namespace_a_file_of_root_is_known_by_what_was_seen_before(folder_mode: int, said: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # a folder that another user can reach
        Path(name).chmod(folder_mode)
        for file in ("noted", "other"):
            path = Path(name, file)
            path.write_bytes(b"secret")
            os.chown(path, 0, 4711)
            path.chmod(0o440)
        command = [sys.executable, "-c", BEHIND_WALLS, f"{name}/noted", f"{name}/other"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == ([said, "NO_PERMISSION"], "")


def test_a_path_that_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "folder").mkdir()
    huge = tmp_path / "huge"
    write_private(huge, b"")
    os.truncate(huge, 2_000_000)
    for name in ("pipe", "folder", "huge"):
        with pytest.raises(PrivateFileError, match="not a regular file"):
            read_private(tmp_path / name)
    with pytest.raises(PrivateFileError, match="cannot read it: No such file") as refused:
        read_private(tmp_path / "missing")
    assert refused.value.exit_code == Exit.NO_PERMISSION


def test_a_write_that_fails_leaves_nothing_behind_and_nothing_changed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "missing" / "file"):
        with pytest.raises(PrivateFileError, match="cannot write it") as refused:
            write_private(path, b"content")
        assert refused.value.exit_code == Exit.NO_PERMISSION
    assert os.listdir(tmp_path) == ["folder"]


def test_folders_are_made_private_and_checked(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder)
    make_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    check_folder(folder, is_private=True)
    folder.chmod(0o755)
    check_folder(folder, is_private=False)
    with pytest.raises(PrivateFileError, match=r"mode 0755 lets others in\. Use chmod 0700\.$"):
        check_folder(folder, is_private=True)
    folder.chmod(0o775)
    with pytest.raises(PrivateFileError, match="0775"):
        check_folder(folder, is_private=False)


def test_a_folder_that_is_not_private_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_private(file, b"")
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for path in (file, link):
        with pytest.raises(PrivateFileError, match="is not a folder"):
            check_folder(path, is_private=True)
    with pytest.raises(PrivateFileError, match="cannot look at it"):
        check_folder(tmp_path / "missing", is_private=True)
    with pytest.raises(PrivateFileError, match="cannot create the folder"):
        make_folder(file / "below")
    if os.geteuid() == 0:
        theirs = tmp_path / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, 65534, 65534)
    else:
        theirs = Path("/")
    with pytest.raises(PrivateFileError, match="belongs to user id"):
        check_folder(theirs, is_private=False)


def test_a_folder_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with hold_folder(tmp_path):
        with pytest.raises(PrivateFileError, match="another process") as refused, hold_folder(tmp_path):
            pass
        assert refused.value.exit_code == Exit.LOCKED
    with hold_folder(tmp_path):
        pass
