"""Room for the files of actions: what a volume must keep free, and what lies below one root already.

Guarantees that no write begins on a volume that would have less than its reserve afterwards, the ledger's a larger one
than others, and that a root holds no more files and bytes than its manifest allows. Files below a root are counted at
times, and the count is remembered in between: writes of other workers show at the next count.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from ipc.limits import MAX_CALL_SECONDS
from ipc.plan import FileAccess
from workers.host.folders import FOLDER_FLAGS, Pulse, open_folder
from workers.host.meter import HostError
from workers.host.openat2 import open_beneath
from workers.host.paths import TEMPORARY_PREFIX

_RESERVED_BYTES = 16 * 1024 * 1024
_RESERVED_INODES = 1024
_RESERVED_SHARE = 20
"""A small volume keeps one part in so many free instead."""
_REMEMBERED_SECONDS = 2.0
_COUNTING_SHARE = 50
"""A count is remembered for so many times as long as it took: it costs two percent of a worker's time at most."""
_MAX_ROOTS = 64
_ENTRIES_BETWEEN_PULSES = 1000
_LEFT_SECONDS = 2 * MAX_CALL_SECONDS
"""A temporary file that is as old as that is of a worker which was killed as it wrote."""


class LedgerReserve(msgspec.Struct, frozen=True):
    """The volume of the ledger by its device, and the bytes that files of actions leave free there."""

    device: int
    reserved_bytes: int


@dataclass(slots=True)
class _FilesBelow:
    """A count of the files and folders below a root and of their bytes, and the time until which it holds."""

    entries: int
    size: int
    until: float


class FileSpace:
    """The room that one worker knows of."""

    def __init__(self, ledger: LedgerReserve | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """`ledger`: None where it lies on no volume of this host."""
        self._ledger = ledger
        self._clock = clock
        self._held: dict[str, _FilesBelow] = {}

    @contextmanager
    def taking(
        self, access: FileAccess, root: int, segments: Sequence[str], size: int, pulse: Pulse, *, adds: bool = False
    ) -> Iterator[None]:
        """The room for a file of `size` bytes that replaces another, or is added to it. Raises HostError unavailable
        for a volume, too-large for a root; what the write itself raises leaves the room as it was."""
        before = self._size_before(root, segments, size)
        entries = len(segments) if before is None else 0
        grows = size - (0 if adds else before or 0)
        held = self._held_below(access, root, pulse)
        if not _fits(access, held, entries, grows):
            held = self._counted(access, root, pulse)
            if not _fits(access, held, entries, grows):
                what = f"{access.max_total_bytes} bytes or {access.max_files} files and folders"
                raise HostError("too-large", f"the action's folder would hold more than {what}")
        yield
        held.entries += entries
        held.size += grows

    def _size_before(self, root: int, segments: Sequence[str], size: int) -> int | None:
        """Bytes of the file that is there; None where there is no file. Raises HostError for a full volume."""
        try:
            with open_folder(root, segments[:-1]) as folder:
                self._refuse_full_volume(folder, size, 1)
                with suppress(FileNotFoundError):
                    return os.stat(segments[-1], dir_fd=folder, follow_symlinks=False).st_size
        except FileNotFoundError:
            self._refuse_full_volume(root, size, len(segments))
        return None

    def _refuse_full_volume(self, folder: int, size: int, entries: int) -> None:
        volume = os.fstatvfs(folder)
        reserve = min(_RESERVED_BYTES, volume.f_blocks * volume.f_frsize // _RESERVED_SHARE)
        if self._ledger is not None and os.fstat(folder).st_dev == self._ledger.device:
            reserve = max(reserve, self._ledger.reserved_bytes)
        has_inodes = volume.f_favail - entries >= min(_RESERVED_INODES, volume.f_files // _RESERVED_SHARE)
        if volume.f_bavail * volume.f_frsize - size < reserve or not (has_inodes or volume.f_files == 0):
            raise HostError("unavailable", "the volume of the action's files has too little room left", retryable=True)

    def _held_below(self, access: FileAccess, root: int, pulse: Pulse) -> _FilesBelow:
        held = self._held.get(access.root)
        return held if held is not None and self._clock() < held.until else self._counted(access, root, pulse)

    def _counted(self, access: FileAccess, root: int, pulse: Pulse) -> _FilesBelow:
        begun = self._clock()
        entries, size = _count(root, access.max_files, pulse)
        took = self._clock() - begun
        held = _FilesBelow(entries, size, begun + took + max(_REMEMBERED_SECONDS, _COUNTING_SHARE * took))
        self._held.pop(access.root, None)
        if len(self._held) >= _MAX_ROOTS:
            del self._held[next(iter(self._held))]
        self._held[access.root] = held
        return held


def _fits(access: FileAccess, held: _FilesBelow, entries: int, grows: int) -> bool:
    """A write that adds nothing always fits. Beyond `max_files` the bytes were not counted to the end."""
    if entries == 0 and grows <= 0:
        return True
    return held.entries + entries <= access.max_files and held.size + max(grows, 0) <= access.max_total_bytes


def _count(root: int, most: int, pulse: Pulse) -> tuple[int, int]:
    """Files and folders below a root, and the bytes of the files; no further than `most` entries. Removes what killed
    workers have left: no guest could."""
    entries, size = 0, 0
    waiting = ["."]
    while waiting and entries <= most:
        path = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError):
            folder = open_beneath(root, path, FOLDER_FLAGS)
            try:
                with os.scandir(folder) as found:
                    for entry in found:
                        entries += 1
                        if entries % _ENTRIES_BETWEEN_PULSES == 0:
                            pulse()
                        if entries > most:
                            break
                        with suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            if stat.S_ISDIR(status.st_mode):
                                waiting.append(f"{path}/{entry.name}")
                            elif _is_removed(folder, entry.name, status):
                                entries -= 1
                                pulse()
                            else:
                                size += status.st_size
            finally:
                os.close(folder)
        pulse()
    return entries, size


def _is_removed(folder: int, name: str, status: os.stat_result) -> bool:
    """Remove a file that a killed worker has left; False for any other, and where this worker may not."""
    if not name.startswith(TEMPORARY_PREFIX) or status.st_mtime >= time.time() - _LEFT_SECONDS:
        return False
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return False
    return True
