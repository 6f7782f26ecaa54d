"""Folders and files below a root, by descriptor: opened beneath it, created within it, digested, replaced whole.

Guarantees that no operation leaves the root or follows a link, that a file is replaced atomically and durably, and
that nothing but regular files and folders is ever opened for data. Knows nothing of calls, budgets or permissions.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from workers.host.openat2 import open_beneath
from workers.host.paths import TEMPORARY_PREFIX

_CHUNK = 1 << 20
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY
_FILE_FLAGS = os.O_NONBLOCK | os.O_NOCTTY
"""Non-blocking, so that a FIFO or a device that lies there can't stop us before we see what it is."""

Pulse = Callable[[], object]
"""Called between chunks of long work; raises when the call's time is over."""


class NotAFile(Exception):
    """The path is not a regular file (or, if we would write into it, has a second name)."""


@contextmanager
def open_root(files_dir: str, root: str, *, create: bool = False) -> Iterator[int]:
    """Descriptor of the root folder, which is made (0700) with `create` when it is missing.

    SECURITY: a root lies in `files_dir`, whatever a plan says, and no link below that leads out of it: what else the
    gateway keeps, compiled modules and keys, is its own user's too. Raises OSError, EXDEV for a root elsewhere.
    """
    segments = _below(files_dir, root)
    try:
        top = os.open(files_dir, FOLDER_FLAGS | os.O_CLOEXEC)
    except FileNotFoundError:
        if not create:
            raise
        _make_folder(files_dir)
        top = os.open(files_dir, FOLDER_FLAGS | os.O_CLOEXEC)
    try:
        with open_folder(top, segments, create=create) as folder:
            yield folder
    finally:
        os.close(top)


def _below(files_dir: str, root: str) -> list[str]:
    """The segments of a root below the folder of all files. Raises OSError."""
    if root == files_dir:
        return []
    segments = root.removeprefix(f"{files_dir}/").split("/")
    if not root.startswith(f"{files_dir}/") or not {"", ".", ".."}.isdisjoint(segments):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
    return segments


def _make_folder(path: str) -> None:
    """Make a folder, and those above it, for the owner only (os.makedirs would leave the upper ones to the umask)."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


@contextmanager
def open_folder(root: int, segments: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Descriptor of the folder `segments` below `root`; with `create`, missing ones are made (0700). Raises OSError."""
    current = open_beneath(root, ".", FOLDER_FLAGS)
    try:
        for segment in segments:
            following = _step(current, segment, create=create)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def _step(folder: int, name: str, *, create: bool) -> int:
    try:
        return open_beneath(folder, name, FOLDER_FLAGS)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
        os.fsync(folder)
    return open_beneath(folder, name, FOLDER_FLAGS)


@contextmanager
def open_file(folder: int, name: str, flags: int = os.O_RDONLY, *, alone: bool = False) -> Iterator[int]:
    """Descriptor of a regular file in `folder`; `alone` refuses one with further names. Raises OSError, NotAFile."""
    file = open_beneath(folder, name, flags | _FILE_FLAGS, 0o600 if flags & os.O_CREAT else 0)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or (alone and status.st_nlink > 1):
            raise NotAFile
        yield file
    finally:
        os.close(file)


def digest(file: int, pulse: Pulse) -> str:
    """`sha256:<hex>` of a file from its start."""
    state = hashlib.sha256()
    offset = 0
    while chunk := os.pread(file, _CHUNK, offset):
        state.update(chunk)
        offset += len(chunk)
        pulse()
    return "sha256:" + state.hexdigest()


def digest_in(folder: int, name: str, pulse: Pulse) -> str | None:
    """Digest of the regular file `name`, or None. Raises OSError, NotAFile."""
    try:
        with open_file(folder, name) as file:
            return digest(file, pulse)
    except FileNotFoundError:
        return None


def read_up_to(file: int, cap: int, pulse: Pulse) -> bytes:
    """Content of an open file; at most `cap` bytes and one more, which tells that there is more."""
    content = bytearray()
    while len(content) <= cap and (chunk := os.read(file, min(_CHUNK, cap + 1 - len(content)))):
        content += chunk
        pulse()
    return bytes(content)


def write_whole(file: int, data: bytes, pulse: Pulse) -> None:
    """Write everything and make it durable."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view[:_CHUNK]) :]
        pulse()
    os.fsync(file)


def replace(folder: int, name: str, data: bytes, pulse: Pulse) -> None:
    """Give `name` this content, whole or not at all, durable when this returns. Raises OSError."""
    temporary = TEMPORARY_PREFIX + os.urandom(12).hex()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        try:
            write_whole(file, data, pulse)
        finally:
            os.close(file)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)
