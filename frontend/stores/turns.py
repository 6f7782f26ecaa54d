"""Turns: processes that write one file go one after the other, fairly.

SQLite's own locks keep writers apart, but a writer that finds one taken sleeps and tries again, and a busy neighbour
can keep it waiting for long. Here the kernel wakes the next one, and whoever has just had a turn can't take the next
before somebody who waits. Only order depends on this, never integrity. A turn ends with its process.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType


class Turn:
    """A turnstile of two locked files beside `path`; a context manager, for one thread.

    The holder of `.next` is the one that waits for `.turn`. A process that comes back at once has to queue for `.next`
    first, which is not free before that one has its turn. Entering raises OSError when the files can't be had.
    """

    def __init__(self, path: Path) -> None:
        self._paths = (path.with_name(f"{path.name}.next"), path.with_name(f"{path.name}.turn"))
        self._files: tuple[int, int] | None = None

    def __enter__(self) -> None:
        files = self._files
        if files is None:
            files = self._files = self._open()
        waiting, turn = files
        # Neither wait has a deadline here, and both end with the process that is waited for: the tasks that wait for
        # this thread have deadlines of their own, and what they queued is dropped when they are over.
        fcntl.flock(waiting, fcntl.LOCK_EX)
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(waiting, fcntl.LOCK_UN)

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._files is not None:
            fcntl.flock(self._files[1], fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the files; entering again opens them again."""
        files, self._files = self._files, None
        for descriptor in files or ():
            os.close(descriptor)

    def _open(self) -> tuple[int, int]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        waiting = os.open(self._paths[0], flags, 0o600)
        try:
            return waiting, os.open(self._paths[1], flags, 0o600)
        except OSError:
            os.close(waiting)
            raise
