"""Private files: written whole or not at all, readable by their owner alone, refused when they are not.

Owns how keys, secrets and shared state lie on the disk, and `check_private`, the one rule for which file is private.
Never prints, logs or repeats what is in them.
"""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ipc.process.exits import Exit

MAX_FILE_BYTES = 1_048_576
_OTHERS = 0o077
_OTHERS_MAY_WRITE = 0o022
_GROUP_READS = 0o040
_ROOT = 0
_UNMAPPED = 65_534
"""The owner that a user namespace shows for every user whom it does not map."""
_CREDENTIALS = "CREDENTIALS_DIRECTORY"
_SWAPPED = "..data/"
"""The link of a folder that Kubernetes fills: it swaps this link to put all files of the folder in force at once."""
_LOOK_AGAIN_SECONDS = 0.02
_RANDOM = re.compile(r"[0-9a-f]{16}")


class PrivateFileError(Exception):
    """A file or folder that is not as it must be. The text is one sentence with its mend; `exit_code` fits it."""

    def __init__(self, text: str, exit_code: Exit) -> None:
        super().__init__(text)
        self.exit_code = exit_code


@contextlib.contextmanager
def _told_as_permission(path: Path, doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PrivateFileError(f"{path}: cannot {doing}: {error.strerror}.", Exit.NO_PERMISSION) from None


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PrivateFileError(
            f"{path}: belongs to user id {status.st_uid}, not to {os.geteuid()} who runs this. Use chown.",
            Exit.NO_PERMISSION,
        )


_handed_by_root: set[str] = set()
"""Paths of files which `note_owners` saw to be root's."""


def note_owners(paths: Iterable[str | None]) -> None:
    """Note which of these files are root's, before this process enters a user namespace without root.

    There every other user looks the same. SECURITY: noted is only a path which none but root and this user can lead
    elsewhere, so that a file which follows at that path is root's too, or this user's.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            if path is not None and os.stat(path).st_uid == _ROOT and _is_kept_by_root(path):
                _handed_by_root.add(path)


def _is_kept_by_root(path: str) -> bool:
    """True if no other user can replace the file: neither its name nor the target of a `..data` link."""
    folders = [os.path.dirname(path)]
    if is_swapped(path):
        folders.append(os.path.dirname(os.path.realpath(path)))
    elif os.path.islink(path):
        return False
    for folder in folders:
        status = os.stat(folder)
        is_open = status.st_mode & _OTHERS_MAY_WRITE and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in {_ROOT, os.geteuid()} or is_open:
            return False
    return True


def is_swapped(path: str | Path) -> bool:
    """True for a file of a folder that Kubernetes fills: a link through the folder's link `..data`."""
    try:
        return os.readlink(path).startswith(_SWAPPED)
    except OSError:
        return False


def _is_handed(path: Path) -> bool:
    """True for a credential of systemd, and for a file of a folder that Kubernetes fills."""
    folder = os.environ.get(_CREDENTIALS)
    return is_swapped(path) or (bool(folder) and path.is_relative_to(str(folder)))


def check_private(path: Path, status: os.stat_result) -> None:
    """Raises KeyFileError unless the open file of this status is a private one.

    It is a regular file of this user or of root, which no other user may write and which has no access for "other".
    Its group may read a file that root hands to this user: there root decided who reads it, and the bit may be the mask
    of an access control list (systemd credentials). It may too in a folder that systemd or Kubernetes fills.
    """
    if not stat.S_ISREG(status.st_mode):
        raise PrivateFileError(f"{path}: is not a regular file of a sensible size.", Exit.CONFIG)
    is_roots = status.st_uid == _ROOT or (status.st_uid == _UNMAPPED and str(path) in _handed_by_root)
    if not is_roots:
        _check_owner(path, status)
    is_ours = status.st_uid == os.geteuid()
    refused = _OTHERS & ~_GROUP_READS if (is_roots and not is_ours) or _is_handed(path) else _OTHERS
    if status.st_mode & refused:
        mode = stat.S_IMODE(status.st_mode)
        raise PrivateFileError(f"{path}: mode {mode:04o} lets others in. Use chmod 0600.", Exit.CONFIG)


def check_folder(path: Path, *, is_private: bool, mend: str = "chmod 0700") -> None:
    """Raises KeyFileError unless `path` is a folder of this user that no other user may change or, with `is_private`,
    read. `mend` is the command that corrects its mode."""
    with _told_as_permission(path, "look at it"):
        status = path.lstat() if is_private else path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise PrivateFileError(f"{path}: is not a folder.", Exit.NO_PERMISSION)
    _check_owner(path, status)
    if status.st_mode & (_OTHERS if is_private else _OTHERS_MAY_WRITE):
        mode = stat.S_IMODE(status.st_mode)
        raise PrivateFileError(f"{path}: mode {mode:04o} lets others in. Use {mend}.", Exit.CONFIG)


def make_folder(path: Path) -> None:
    """Create `path` with mode 0700 where it is missing, parents too. Raises KeyFileError."""
    with _told_as_permission(path, "create the folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
            sync_folder(path.parent)


@contextlib.contextmanager
def hold_folder(path: Path, *, wait_seconds: float = 0) -> Iterator[None]:
    """Keep other processes that use this function out of `path`.

    Raises KeyFileError when another one is in there and does not leave within `wait_seconds`.
    """
    with _told_as_permission(path, "open it"):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock_in_time(path, descriptor, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(descriptor)


def _lock_in_time(path: Path, descriptor: int, deadline: float) -> None:
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise PrivateFileError(f"{path}: another process is at work in it. Try again.", Exit.LOCKED) from None
        time.sleep(_LOOK_AGAIN_SECONDS)  # the kernel has no wait for a lock that ends by itself


def read_private(path: Path) -> bytes:
    """The content of a private file.

    Raises KeyFileError unless `check_private` takes it. The file that was checked is the file that is read; links are
    followed, since their target is checked.
    """
    with _opened_private(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(MAX_FILE_BYTES)


def look_at_private(path: Path) -> None:
    """Raises KeyFileError as `read_private` would, and reads nothing."""
    with _opened_private(path):
        pass


@contextlib.contextmanager
def _opened_private(path: Path) -> Iterator[int]:
    with _told_as_permission(path, "read it"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            check_private(path, status)
            if status.st_size > MAX_FILE_BYTES:
                raise PrivateFileError(f"{path}: is not a regular file of a sensible size.", Exit.CONFIG)
            yield descriptor
        finally:
            os.close(descriptor)


def look_at(path: Path) -> tuple[int, ...] | None:
    """Values that differ between two states of a file, mode and owner included; None if it can't be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, content: bytes, *, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Put `content` at `path` with mode 0600, durably and at once.

    Raises KeyFileError; then `path` is as it was, unless it is the folder alone that could not be synced. With a
    `max_bytes` above MAX_FILE_BYTES the file could not be read again.
    """
    if len(content) > max_bytes:
        raise PrivateFileError(f"{path}: would have more than {max_bytes} bytes.", Exit.CONFIG)
    write_whole(path, content, mode=0o600)


def write_whole(path: Path, content: bytes, *, mode: int, owner: tuple[int, int] | None = None) -> None:
    """The same for a file of any size and mode, whatever the umask is; `owner` are ids of user and group. Raises
    KeyFileError."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with _told_as_permission(path, "write it"):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if owner is not None:
                    os.fchown(descriptor, *owner)
                os.fchmod(descriptor, mode)
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            temporary.rename(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def remove_unfinished(path: Path) -> None:
    """Remove what a write that was killed left beside `path`: it may hold a key. Raises KeyFileError.

    The caller must hold the folder: a write that is under way looks the same.
    """
    prefix = f".{path.name}."
    with _told_as_permission(path.parent, "look into it"):
        for name in os.listdir(path.parent):
            if name.startswith(prefix) and _RANDOM.fullmatch(name[len(prefix) :]):
                (path.parent / name).unlink(missing_ok=True)


def partial_of(target: Path, pid: int) -> Path:
    """The folder that becomes `target` once it is whole, of the command with this process id."""
    return target.with_name(f".{target.name}.{pid}.partial")
