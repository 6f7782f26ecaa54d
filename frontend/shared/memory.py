"""The memory that fronts share, as one front sees it (ipc/channel/front_memory.py says what lies where).

Guarantees that a lock is held for microseconds, never across an await, and falls to the next with its holder's end: a
front that is killed leaves no lock behind. A lone front needs none, and takes none. A front may be stopped while it
holds one: each is waited for within a bound, so that the others go on until it is killed.
"""

import fcntl
import mmap
import os
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType

from frontend.errors import GateError
from ipc.channel import front_memory as at
from ipc.channel.front_memory import Layout, make_memory
from ipc.process.logs import log

_CELL = 8
_TRIES_AT_ONCE = 10
_TRIES = 1000
"""A millisecond apart. Counted, not timed: while the machine stood still, no holder could go on."""
_PAUSE_SECONDS = 0.001


class MemoryLocked(GateError):
    """A front that hangs holds a lock. The first time, it has a cause, and so a log line."""

    def __init__(self, cause: str | None = None) -> None:
        super().__init__("overloaded", cause=cause)


class _ByteLock:
    """One byte of the memory, locked for this process (fcntl(2), "Advisory record locking"), and given up when its
    holder does not go on. `stuck`: offsets of locks that were, which are tried once."""

    __slots__ = ("_descriptor", "_offset", "_stuck")

    def __init__(self, descriptor: int, offset: int, stuck: set[int]) -> None:
        self._descriptor = descriptor
        self._offset = offset
        self._stuck = stuck

    def __enter__(self) -> None:
        if self._is_taken():
            return
        if self._offset in self._stuck:
            raise MemoryLocked
        for number in range(_TRIES_AT_ONCE + _TRIES):
            if number >= _TRIES_AT_ONCE:
                time.sleep(_PAUSE_SECONDS)
            if self._is_taken():
                return
        self._stuck.add(self._offset)
        raise MemoryLocked("another front holds a lock of the memory that fronts share, and does not go on")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, self._offset)

    def _is_taken(self) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._offset)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, by fcntl(2)
            return False
        self._stuck.discard(self._offset)
        return True


class _DispensableLock(_ByteLock):
    """The same for a block that runs without it when it is given up: unlocking what is not held does nothing."""

    __slots__ = ()

    def __enter__(self) -> None:
        try:
            super().__enter__()
        except MemoryLocked as locked:
            if locked.cause is not None:
                log.error("this front goes on without a lock", cause=locked.cause)


Lock = AbstractContextManager[None]
_NO_LOCK: Lock = nullcontext()


class SharedMemory:
    """One front's view of it. `number` is the front's own, from 1."""

    def __init__(self, descriptor: int, layout: Layout, number: int = 1) -> None:
        """Takes the descriptor over."""
        self.layout = layout
        self.number = number
        self._whole = memoryview(mmap.mmap(descriptor, layout.size))
        self._descriptor = descriptor
        self._stuck: set[int] = set()
        if layout.fronts == 1:
            os.close(descriptor)  # needed for locks alone: what is mapped stays
        self._flags = self.part(0, at.POLICY_DIGEST).cast("Q")
        self._digest = self.part(at.POLICY_DIGEST, at.DIGEST_BYTES)
        self._manifests = self.part(at.MANIFESTS_DIGEST, at.DIGEST_BYTES)
        self._started = self.part(at.STARTED, _CELL).cast("d")
        self._serving = {one: self.part(self.area(one).start + at.IS_SERVING, _CELL).cast("Q") for one in self._all}

    @staticmethod
    def alone(layout: Layout | None = None) -> "SharedMemory":
        """Memory of a front that shares it with no other."""
        layout = layout or Layout(1, 1 << 13)
        memory = SharedMemory(make_memory(layout), layout)
        memory._started[0] = time.monotonic()
        return memory

    @property
    def _all(self) -> range:
        return range(1, self.layout.fronts + 1)

    @property
    def others(self) -> list[int]:
        """Numbers of the other fronts, whether or not they live."""
        return [number for number in self._all if number != self.number]

    def part(self, start: int, size: int) -> memoryview:
        """The `size` bytes from `start`."""
        return self._whole[start : start + size]

    def area(self, number: int | None = None) -> at.Area:
        """Where a front's own part lies; this one's unless given."""
        return self.layout.area(number or self.number)

    def lock(self, offset: int) -> Lock:
        """The lock of whatever begins at this offset; for blocks that don't wait. Raises MemoryLocked, within a second
        or two, if another front holds it and does not go on; at once as long as that lasts."""
        return _NO_LOCK if self.layout.fronts == 1 else _ByteLock(self._descriptor, offset, self._stuck)

    def _dispensable_lock(self, offset: int) -> Lock:
        """The same for what can't be refused; after that time the block runs without it. SECURITY: a digest that is
        written meanwhile equals none, and then nothing is decided."""
        return _NO_LOCK if self.layout.fronts == 1 else _DispensableLock(self._descriptor, offset, self._stuck)

    # ----------------------------------------------------------------- the gateway's life

    @property
    def uptime(self) -> float:
        """Seconds since the gateway started."""
        return time.monotonic() - self._started[0]

    @property
    def is_draining(self) -> bool:
        """True if a front has begun to refuse new work; all others follow."""
        return bool(self._flags[at.IS_DRAINING // _CELL])

    def drain(self, *, is_draining: bool = True) -> bool:
        """Have all fronts refuse new work from now on. Returns whether they did already."""
        with self._dispensable_lock(at.IS_DRAINING):
            was = self.is_draining
            self._flags[at.IS_DRAINING // _CELL] = is_draining
        return was

    def is_serving(self, number: int) -> bool:
        """Whether this front serves now."""
        return bool(self._serving[number][0])

    def begin_serving(self) -> None:
        """This front serves from now on."""
        self._serving[self.number][0] = 1

    def end_serving(self) -> bool:
        """This front serves no more. True if it was the last."""
        with self._dispensable_lock(at.IS_DRAINING):
            self._serving[self.number][0] = 0
            return not any(map(self.is_serving, self.others))

    def claims_start(self) -> bool | None:
        """True: this front must write the event of the gateway's start, and then call `told_start`. False: it is
        written. None: another front is writing it."""
        cell = at.HAS_TOLD_START // _CELL
        with suppress(MemoryLocked), self.lock(at.HAS_TOLD_START):
            by = self._flags[cell]
            if not by:
                self._flags[cell] = self.number
            return True if by in (0, self.number) else False if by == at.TOLD else None
        return None  # its holder stands still, and is killed for it

    def told_start(self, *, is_told: bool) -> None:
        """Note whether the event of the start was written."""
        self._flags[at.HAS_TOLD_START // _CELL] = at.TOLD if is_told else 0

    # ----------------------------------------------------------------- the policy's data

    @property
    def policy_changes(self) -> int:
        """How often a front has changed the policy's data: costs a caller next to nothing."""
        return self._flags[at.POLICY_CHANGES // _CELL]

    def policy_digest(self) -> str:
        """The digest of the policy since the last change."""
        with self._dispensable_lock(at.POLICY_DIGEST):
            return bytes(self._digest).rstrip(b"\0").decode("ascii", "replace")

    def note_policy(self, digest: str) -> None:
        """The policy with this digest is in force; each front has heard, or will hear, of it otherwise."""
        with self._dispensable_lock(at.POLICY_DIGEST):
            self._digest[:] = digest.encode("ascii").ljust(at.DIGEST_BYTES, b"\0")[: at.DIGEST_BYTES]

    def change_policy(self, digest: str) -> int:
        """Every front must use the policy with this digest before it decides again. Returns `policy_changes`."""
        with self._dispensable_lock(at.POLICY_DIGEST):
            self._digest[:] = digest.encode("ascii").ljust(at.DIGEST_BYTES, b"\0")[: at.DIGEST_BYTES]
            self._flags[at.POLICY_CHANGES // _CELL] += 1
            return self.policy_changes

    # ----------------------------------------------------------------- the manifests in force

    def manifests_digest(self) -> str:
        """The digest of all manifests that evidence names as in force; empty before the event of the start."""
        with self._dispensable_lock(at.MANIFESTS_DIGEST):
            return bytes(self._manifests).rstrip(b"\0").decode("ascii", "replace")

    def note_manifests(self, digest: str) -> None:
        """Evidence names the manifests with this digest."""
        with self._dispensable_lock(at.MANIFESTS_DIGEST):
            self._manifests[:] = digest.encode("ascii").ljust(at.DIGEST_BYTES, b"\0")[: at.DIGEST_BYTES]
