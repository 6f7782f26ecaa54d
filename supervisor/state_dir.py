"""The state directory: made private, checked to be ours, held by one gateway at a time.

The lock is a flock on `gateway.lock`, which the kernel drops with the process; the file itself stays, since removing
it would let two gateways hold two locks. SECURITY: nothing is written into a folder that others can write to.
"""

import fcntl
import os
import stat
from contextlib import ExitStack
from pathlib import Path

from ipc.exits import Exit
from supervisor.refusal import Refused

LOCK_NAME = "gateway.lock"


def hold_state_dir(folder: Path, cleanup: ExitStack, *, is_private: bool) -> None:
    """Make `folder` if it is missing, check it and lock it until `cleanup` ends.

    With `is_private` nobody else may enter (mode 0700, tightened when the folder is empty or was a gateway's before);
    without, group and others may read as far as its owner allows, but never write. Raises Refused, and leaves no
    folder behind that it made.
    """
    made = _make(folder)
    cleanup.callback(_remove_if_empty, made)
    try:
        _check(folder, is_private=is_private)
        _lock(folder, cleanup)
    except OSError as error:
        raise Refused(Exit.NO_PERMISSION, f"state directory {folder} can't be used: {error.strerror}.") from None


def _make(folder: Path) -> list[Path]:
    """Make the folder and its parents; return those that were missing, deepest first."""
    missing = [one for one in (folder, *folder.parents) if not one.exists() and not one.is_symlink()]
    made: list[Path] = []
    try:
        for one in reversed(missing):
            one.mkdir(0o700)
            made.insert(0, one)
    except OSError as error:
        _remove_if_empty(made)
        text = f"state directory {folder} can't be made: {error.strerror}."
        raise Refused(Exit.NO_PERMISSION, text) from None
    return made


def _remove_if_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _check(folder: Path, *, is_private: bool) -> None:
    status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise Refused(Exit.NO_PERMISSION, f"state directory {folder} is not a folder.")
    if status.st_uid != os.geteuid():
        raise Refused(Exit.NO_PERMISSION, f"state directory {folder} belongs to another user (uid {status.st_uid}).")
    mode = stat.S_IMODE(status.st_mode)
    if is_private and mode & 0o077:
        # A folder full of other things is somebody's home or /tmp: closing it would do harm.
        is_ours = (folder / LOCK_NAME).exists() or not any(folder.iterdir())
        if not is_ours:
            text = (
                f"state directory {folder} is open to other users (mode {mode:04o}); run chmod 700 or choose another."
            )
            raise Refused(Exit.NO_PERMISSION, text)
        folder.chmod(0o700)
    elif mode & 0o022:
        text = f"state directory {folder} can be written by other users (mode {mode:04o}); run chmod go-w on it."
        raise Refused(Exit.NO_PERMISSION, text)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Refused(Exit.NO_PERMISSION, f"state directory {folder} can't be written.")


def _lock(folder: Path, cleanup: ExitStack) -> None:
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        pid = f" (pid {holder})" if holder.isdecimal() else ""
        raise Refused(Exit.LOCKED, f"state directory {folder} is held by another gateway{pid}.") from None
    cleanup.callback(os.close, descriptor)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
