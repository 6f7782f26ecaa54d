"""The state directory: made private, checked to be ours, held by one gateway at a time.

The lock is a flock on `gateway.lock`, which the kernel drops with the process; the file itself stays, since removing
it would let two gateways hold two locks. SECURITY: nothing is written into a folder that others can write to,
or could replace: without proofs that were used and the epoch, leases that have ended would count again.
"""

import fcntl
import os
import stat
from contextlib import ExitStack
from pathlib import Path

from ipc.process.exits import Exit
from ipc.settings import FRONTS
from supervisor.refusal import Refused

LOCK_NAME = "gateway.lock"
STATE_MODE = 0o700
_OF_FRONTS = ("learned.json",)
"""Files of fronts that earlier versions kept beside the ledger."""


def hold_state_dir(folder: Path, cleanup: ExitStack, *, is_mended: bool) -> None:
    """Make `folder` if it is missing, check it and lock it until `cleanup` ends.

    It has mode 0700: no other user may look into it. With `is_mended`, another mode is mended when the folder is empty
    or was a gateway's before; without, it is refused. Raises Refused, and leaves no folder behind that it made.
    """
    made = _make(folder)
    cleanup.callback(_remove_if_empty, made)
    try:
        _check(folder, is_mended=is_mended)
        _lock(folder, cleanup)
        _settle_fronts(folder, cleanup)
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


def state_dir_trouble(folder: Path, status: os.stat_result, *, is_mended: bool) -> tuple[str, str] | None:
    """Return the problem of an existing state directory and its mend, or None; a mode that a start would mend is no
    problem."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is not a folder", "Move it away, or name another."
    if status.st_uid != os.geteuid():
        return (
            f"{folder} belongs to another user (uid {status.st_uid})",
            "Run this as the gateway's user, or use chown.",
        )
    if mode & 0o777 != STATE_MODE and not (is_mended and _was_ours(folder)):
        return f"{folder} has mode {mode:04o}, and keys lie in it", f"Run chmod 0700 {folder}, or name another."
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"{folder} can't be written", "Correct its owner or mode."
    return None


def trouble_above(folder: Path, *, is_dev: bool) -> tuple[str, str] | None:
    """Return the problem of a folder in which every user could put another state directory into the place of this one,
    and its mend; None without one, and in dev mode, whose keys protect nothing.

    The top of a volume may be open: Kubernetes gives volumes that mode, to those alone who have them mounted.
    """
    if is_dev:
        return None
    for above in dict.fromkeys([*folder.absolute().parents, *Path(os.path.realpath(folder)).parents]):
        mode = above.stat().st_mode if above.is_dir() else 0
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX and not above.is_mount():
            return f"{folder} can be replaced by every user, as {above} is open to them", f"Run chmod o-w {above}."
    return None


def _was_ours(folder: Path) -> bool:
    """A folder full of other things may be a home folder or /tmp: closing it would do harm."""
    return (folder / LOCK_NAME).exists() or not any(folder.iterdir())


def _check(folder: Path, *, is_mended: bool) -> None:
    status = folder.stat()
    trouble = state_dir_trouble(folder, status, is_mended=is_mended) or trouble_above(folder, is_dev=is_mended)
    if trouble is not None:
        raise Refused(Exit.NO_PERMISSION, f"state directory {trouble[0]}. {trouble[1]}")
    if stat.S_IMODE(status.st_mode) & 0o777 != STATE_MODE:
        folder.chmod(STATE_MODE)


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


def _settle_fronts(folder: Path, cleanup: ExitStack) -> None:
    """Make the folder that fronts keep files in, and move there what earlier versions kept beside the ledger."""
    own = folder / FRONTS
    own.mkdir(STATE_MODE, exist_ok=True)
    cleanup.callback(_remove_if_empty, [own])
    for name in _OF_FRONTS:
        if (folder / name).exists() and not (own / name).exists():
            (folder / name).rename(own / name)
        (folder / f"{name}.lock").unlink(missing_ok=True)
