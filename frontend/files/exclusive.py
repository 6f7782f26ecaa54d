"""Changing a file that several fronts share: one change at a time, each on top of the one before.

The turn is a lock of the kernel on a file beside it, which ends with its process. Waiting for the turn and writing
both have a deadline; what is still being written past it keeps the turn, so that nothing it would undo is written in
between. Knows nothing of what the file holds.
"""

import contextlib
import fcntl
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from frontend.deadlines import FileDeadlines
from frontend.files.closed import why_closed
from ipc.process.private_files import PrivateFileError, remove_unfinished, write_private

T = TypeVar("T")


class NotChanged(Exception):
    """The file can't be changed now; says why. After a write that took too long it may change all the same."""


class _TurnLock:
    """The lock of one turn, taken in a thread for a task that may be gone by then; the later of the two closes it."""

    def __init__(self, path: Path, look_again_seconds: float) -> None:
        self._path = path
        self._look_again_seconds = look_again_seconds
        self._guard = threading.Lock()
        self._descriptor: int | None = None
        self._is_over = False

    def take(self) -> None:
        """Wait for the turn, or until it is over before it began. Raises OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        is_taken = False
        try:
            if self._has_come(descriptor):
                with self._guard:
                    if not self._is_over:
                        self._descriptor, is_taken = descriptor, True
        finally:
            if not is_taken:
                os.close(descriptor)

    def _has_come(self, descriptor: int) -> bool:
        # The kernel's own wait would last as long as the present turn, perhaps for ever, and keep one of the few
        # threads of this process for each caller that gave up waiting.
        while not self._is_over:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(self._look_again_seconds)
        return False

    def hand_over(self) -> int | None:
        """The descriptor, now the caller's to close; None when the turn is over."""
        with self._guard:
            descriptor, self._descriptor = self._descriptor, None
            return descriptor

    def release(self) -> None:
        """End the turn, even if it has not begun."""
        with self._guard:
            self._is_over = True
        descriptor = self.hand_over()
        if descriptor is not None:
            os.close(descriptor)


class FileTurn:
    """One turn at the file."""

    def __init__(self, path: Path, lock: _TurnLock, write_seconds: float) -> None:
        self._path = path
        self._lock = lock
        self._write_seconds = write_seconds

    async def replace(self, content: bytes) -> None:
        """Put `content` in the file's place, durably and at once; ends the turn. Raises NotChanged."""
        await self.perform(lambda: self._replace(content))

    async def perform(self, change: Callable[[], T]) -> T:
        """Run `change` in a thread and return its result; ends the turn. Raises NotChanged, for a KeyFileError of
        `change` too."""
        problem = f"{self._path}: was not written within {self._write_seconds:g} s"
        with trio.move_on_after(self._write_seconds):
            try:
                return await trio.to_thread.run_sync(self._perform, change, abandon_on_cancel=True)
            except PrivateFileError as error:
                problem = str(error)
        raise NotChanged(problem)

    def _perform(self, change: Callable[[], T]) -> T:
        descriptor = self._lock.hand_over()
        if descriptor is None:  # the turn is over: the caller stopped waiting before the change began
            raise NotChanged(f"{self._path}: the turn is over")
        try:
            return change()
        finally:
            os.close(descriptor)

    def _replace(self, content: bytes) -> None:
        before = _modified(self._path)
        remove_unfinished(self._path)  # of a process that was killed in its turn
        with _kept(self._path):
            write_private(self._path, content)
        # Readers know a file by inode, size and time, and an inode may come again: so the time only grows.
        moment = max(time.time_ns(), before + 1)
        with contextlib.suppress(OSError):
            os.utime(self._path, ns=(moment, moment))


class Exclusive:
    """The turns of this front at one file. `lock` is the file that is locked; without it one beside it."""

    def __init__(self, path: Path, lock: Path | None = None, deadlines: FileDeadlines = FileDeadlines()) -> None:
        self.path = path
        self.deadlines = deadlines
        """For turns that begin from now on."""
        self._lock_path = path.with_name(f"{path.name}.lock") if lock is None else lock
        self._of_this_front = trio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[FileTurn]:
        """Hold the turn: no other front changes the file meanwhile. Raises NotChanged when the turn does not come."""
        deadlines = self.deadlines
        lock = _TurnLock(self._lock_path, deadlines.look_again_seconds)
        with _in_time(self.path, deadlines.turn_seconds):
            await self._of_this_front.acquire()
        try:
            with _in_time(self.path, deadlines.turn_seconds):
                await trio.to_thread.run_sync(lock.take, abandon_on_cancel=True)
            yield FileTurn(self.path, lock, deadlines.write_seconds)
        finally:
            lock.release()
            self._of_this_front.release()


@contextlib.contextmanager
def _in_time(path: Path, seconds: float) -> Iterator[None]:
    try:
        with trio.fail_after(seconds):
            yield
    except trio.TooSlowError:
        raise NotChanged(f"{path}: others have been changing it for {seconds:g} s") from None
    except OSError as error:
        raise NotChanged(f"{path}: can't be locked: {why_closed(path, error)}") from None


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Roll back if fsync fails: the change was reported as failed."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    take_back: Callable[[], object] | None = partial(aside.rename, path)
    try:
        os.link(path, aside)
    except FileNotFoundError:
        take_back = path.unlink
    except OSError:  # a disk without links
        take_back = None
    try:
        yield
    except PrivateFileError:
        if take_back is not None:
            with contextlib.suppress(OSError):
                take_back()
        raise
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
