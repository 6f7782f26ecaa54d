"""The fs host call: files below an action's root, within its operations, patterns and sizes.

Guarantees that what is done was allowed for that very path, that one I/O call is counted and one observation left for
each attempt, and that errors name no path outside the root. `folders.py` has the code that touches the disk.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ipc.messages.calling import Observation
from ipc.plan import FileAccess
from ipc.texts.paths import matches
from workers.host.encoding import to_bytes, to_text
from workers.host.folders import (
    NotAFile,
    digest,
    digest_in,
    open_file,
    open_folder,
    open_root,
    read_up_to,
    replace,
    write_whole,
)
from workers.host.meter import HostError, Meter
from workers.host.paths import TEMPORARY_PREFIX, split_path
from workers.host.space import FileSpace

MAX_ENTRIES = 1000
_CREATING = ("write", "append")
_CHANGING = (*_CREATING, "delete")

T = TypeVar("T")


class FolderEntry(NamedTuple):
    """One file or folder: `kind` is file or directory, `size` in bytes (0 for a folder)."""

    name: str
    kind: str
    size: int


class _Effect(NamedTuple):
    """The effect of an operation: digests before and after, and the size that goes with the latter."""

    before: str | None = None
    after: str | None = None
    size: int | None = None


class FileHost:
    """The files of one call. Every method raises HostError, and IoBudgetExceeded when the call may not go on."""

    def __init__(
        self, access: FileAccess, meter: Meter, files_dir: str, approved_paths: tuple[str, ...] = (), *,
        max_entries: int = MAX_ENTRIES, space: FileSpace | None = None,
    ) -> None:  # fmt: skip
        """A root that is not in `files_dir` is denied. `approved_paths` are those that a person approved with this very
        plan, beyond the manifest's patterns; `max_entries` of a folder are listed; `space` outlives this call."""
        self._space = space or FileSpace()
        self._access = access
        self._meter = meter
        self._files_dir = files_dir
        self._max_entries = max_entries
        self._allowed = access.allowed_paths + approved_paths

    def read(self, path: str, encoding: str) -> str:
        """Content of a file as text, or as base64."""

        def act(root: int, segments: list[str]) -> tuple[str, _Effect]:
            with open_folder(root, segments[:-1]) as folder, open_file(folder, segments[-1]) as file:
                self._check_size(os.fstat(file).st_size)
                data = read_up_to(file, self._access.max_file_bytes, self._meter.remaining)
            self._check_size(len(data))
            seen = _digest_of(data)
            return to_text(data, encoding), _Effect(seen, seen, len(data))

        return self._perform("read", path, act)

    def write(self, path: str, data: str, encoding: str) -> int:
        """Replace or create a file, whole, with the folders above it. Returns its size."""

        def act(root: int, segments: list[str]) -> tuple[int, _Effect]:
            content = to_bytes(data, encoding)
            self._check_size(len(content))
            with (
                self._space.taking(self._access, root, segments, len(content), self._meter.remaining),
                open_folder(root, segments[:-1], create=True) as folder,
            ):
                before = digest_in(folder, segments[-1], self._meter.remaining)
                self._meter.note_sending()
                replace(folder, segments[-1], content, self._meter.remaining)
            return len(content), _Effect(before, _digest_of(content), len(content))

        return self._perform("write", path, act)

    def append(self, path: str, data: str, encoding: str) -> int:
        """Add to the end of a file, or create it. Returns its size."""

        def act(root: int, segments: list[str]) -> tuple[int, _Effect]:
            content = to_bytes(data, encoding)
            self._check_size(len(content))
            name = segments[-1]
            with (
                self._space.taking(self._access, root, segments, len(content), self._meter.remaining, adds=True),
                open_folder(root, segments[:-1], create=True) as folder,
            ):
                flags = os.O_RDWR | os.O_APPEND
                self._meter.note_sending()
                try:
                    with open_file(folder, name, flags, alone=True) as file:
                        return self._append(file, content, before=digest(file, self._meter.remaining))
                except FileNotFoundError:
                    with open_file(folder, name, flags | os.O_CREAT | os.O_EXCL, alone=True) as file:
                        os.fsync(folder)
                        return self._append(file, content, before=None)

        return self._perform("append", path, act)

    def _append(self, file: int, content: bytes, *, before: str | None) -> tuple[int, _Effect]:
        size = os.fstat(file).st_size + len(content)
        self._check_size(size)
        write_whole(file, content, self._meter.remaining)
        return size, _Effect(before, digest(file, self._meter.remaining), size)

    def list_folder(self, path: str) -> list[FolderEntry]:
        """Files and folders in a folder (the empty path is the root), by name; what is denied is left out."""

        def act(root: int, segments: list[str]) -> tuple[list[FolderEntry], _Effect]:
            listed: list[FolderEntry] = []
            with open_folder(root, segments) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    if self._is_hidden(segments, entry.name):
                        continue
                    if len(listed) == self._max_entries:
                        raise HostError("too-large", f"the folder holds more than {self._max_entries} entries")
                    seen = _entry(entry.name, entry.stat(follow_symlinks=False))
                    if seen is not None:
                        listed.append(seen)
            return sorted(listed), _Effect()

        return self._perform("list", path, act)

    def stat(self, path: str) -> FolderEntry:
        """Name, kind and size of a file or folder."""

        def act(root: int, segments: list[str]) -> tuple[FolderEntry, _Effect]:
            with open_folder(root, segments[:-1]) as folder:
                name = segments[-1] if segments else "."
                entry = _entry(segments[-1] if segments else "", os.stat(name, dir_fd=folder, follow_symlinks=False))
            if entry is None:
                raise NotAFile
            return entry, _Effect()

        return self._perform("stat", path, act)

    def delete(self, path: str) -> None:
        """Remove a file."""

        def act(root: int, segments: list[str]) -> tuple[None, _Effect]:
            with open_folder(root, segments[:-1]) as folder:
                before = digest_in(folder, segments[-1], self._meter.remaining)
                self._meter.note_sending()
                os.unlink(segments[-1], dir_fd=folder)
                os.fsync(folder)
            return None, _Effect(before=before)

        return self._perform("delete", path, act)

    def _perform(self, operation: str, path: str, act: Callable[[int, list[str]], tuple[T, _Effect]]) -> T:
        self._meter.charge()
        target = f"{operation} {path}"
        try:
            self._meter.remaining()
            segments = self._permitted(operation, path)
            creates = operation in _CREATING
            with _translated_errors(), open_root(self._files_dir, self._access.root, create=creates) as root:
                value, effect = act(root, segments)
        except HostError as error:
            problem = f"{error.failure.kind}: {error.failure.message}"
            self._meter.observe(Observation("fs", target[:500], ok=False, error=problem))
            if error.failure.kind == "unavailable":  # the disk is full
                error.name = "provider_failed"
            raise
        if operation in _CHANGING:
            self._meter.note_answer()
        self._meter.observe(
            Observation(
                "fs", target, ok=True, bytes=effect.size, body_sha256=effect.after, before_sha256=effect.before
            )
        )  # fmt: skip
        return value

    def _permitted(self, operation: str, path: str) -> list[str]:
        if operation not in self._access.allowed_operations:
            raise HostError("denied", f"the action may not {operation}")
        segments = [] if path == "" and operation in ("list", "stat") else split_path(path)
        if not matches(segments, self._allowed) or matches(segments, self._access.denied_paths):
            raise HostError("denied", "the path is not in the action's allowed paths")
        return segments

    def _is_hidden(self, segments: list[str], name: str) -> bool:
        is_text = name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
        return name.startswith(TEMPORARY_PREFIX) or not is_text or matches([*segments, name], self._access.denied_paths)

    def _check_size(self, size: int) -> None:
        if size > self._access.max_file_bytes:
            raise HostError("too-large", f"the file would have more than {self._access.max_file_bytes} bytes")


def _digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _entry(name: str, status: os.stat_result) -> FolderEntry | None:
    if stat.S_ISDIR(status.st_mode):
        return FolderEntry(name, "directory", 0)
    return FolderEntry(name, "file", status.st_size) if stat.S_ISREG(status.st_mode) else None


_KINDS = {
    errno.ENOENT: ("not-found", "no such file"),
    errno.ENOTDIR: ("conflict", "a folder of the path is a file"),
    errno.EISDIR: ("conflict", "the path is a folder"),
    errno.EEXIST: ("conflict", "the file exists"),
    errno.EXDEV: ("denied", "the path leaves the action's root"),
    errno.ELOOP: ("denied", "the path leads over a symbolic link"),
    errno.EACCES: ("denied", "the operating system denies access"),
    errno.EPERM: ("denied", "the operating system denies access"),
    errno.EROFS: ("denied", "the file system is read-only"),
    errno.EFBIG: ("too-large", "the file system takes no file of that size"),
    errno.ENAMETOOLONG: ("invalid-input", "a name is too long for the file system"),
    errno.ENOSPC: ("unavailable", "the disk is full"),
    errno.EDQUOT: ("unavailable", "the disk quota is used up"),
    errno.ENXIO: ("conflict", "the path is no regular file"),
}


class _translated_errors:  # noqa: N801 - used as a with statement
    """Turns what the operating system says into provider errors. SECURITY: never with the path it said it about."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, NotAFile):
            raise HostError("conflict", "the path is no regular file") from None
        if isinstance(error, OSError):
            kind, message = _KINDS.get(
                error.errno or 0, ("internal", f"file system error {errno.errorcode.get(error.errno or 0, '?')}")
            )
            raise HostError(kind, message, retryable=kind == "unavailable") from None
