"""The workers of one profile and the calls that wait for one. Decides; touches no process and waits for no channel.

Guarantees: waiting callers are served in the order of least recent service, calls of one caller in the order of
arrival, so that one caller's queue never delays all others; a worker runs one call at a time, and is given more ahead
only where callers allow it and while none of its calls takes long; a worker that broke the protocol, was used for an
isolated call or has seen too few module loads is never handed out again; requests for workers are bounded by `max`. A
worker counts until the supervisor says it is gone, so that two processes never share a place.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import trio

from frontend.pool.channel import WorkerChannel
from frontend.pool.deadlines import PoolDeadlines
from frontend.pool.order import ServiceOrder
from frontend.telemetry.logs import log
from ipc.limits import MAX_AHEAD
from ipc.settings import PoolSettings

MAX_WAITERS = 1024
"""Calls that wait for one profile; one more is refused at once."""
DISCARDED = "discarded"


class NoWorker(Exception):
    """No worker came free in time, or too many calls wait for one. Nothing was sent to any worker."""


class Want(NamedTuple):
    """What a call wants of a worker. `owners` own it, the larger group first."""

    owners: tuple[str, ...] = ()
    is_fresh: bool = False
    """A worker that has never served a call."""
    is_patient: bool = False
    """A worker will do that has other calls to run before it, as long as none of them takes long."""
    is_brief: bool = False
    """It is expected to end in a moment, and patient."""


class _Waiter:
    __slots__ = ("arrived", "channel", "want")

    def __init__(self, want: Want) -> None:
        self.want = want
        self.arrived = trio.Event()
        self.channel: WorkerChannel | None = None


class ProfilePool:
    """`need()` asks for one more worker, `kill(worker_id, reason)` for the end of one; both return at once."""

    def __init__(
        self, profile: str, settings: PoolSettings, need: Callable[[], None], kill: Callable[[str, str], None],
        deadlines: PoolDeadlines = PoolDeadlines(), max_waiters: int = MAX_WAITERS, abreast: int = 1,
    ) -> None:  # fmt: skip
        self._profile = profile
        self._abreast = abreast
        self._settings = settings
        self._need = need
        self._kill = kill
        self._deadlines = deadlines
        self._max_waiters = max_waiters
        self._members: dict[str, WorkerChannel] = {}
        self._used: list[WorkerChannel] = []
        self._unused: list[WorkerChannel] = []
        self._leaving: dict[str, float] = {}
        self._waiters: deque[_Waiter] = deque()
        self._asked: deque[float] = deque()
        self._order = ServiceOrder()
        self._generation = 0

    @property
    def idle(self) -> int:
        """Workers that could take a call now."""
        return len(self._used) + len(self._unused)

    @property
    def members(self) -> int:
        """Workers that are attached and not gone, in whatever state."""
        return len(self._members)

    @property
    def waiting(self) -> int:
        """Calls that wait for a worker."""
        return len(self._waiters)

    async def acquire(self, want: Want, seconds: float) -> WorkerChannel:
        """A worker for one call, which must be given to `release` in any case. Raises NoWorker after `seconds`.

        Returns at once, without a checkpoint, when one is idle, or has room for a call that is patient.
        """
        # A worker that comes free is offered to waiting calls first: while one is idle, no call waits for it.
        channel = self._behind_brief_ones() if want.is_brief else None
        channel = channel or self._take(want.is_fresh) or (self._with_room() if want.is_patient else None)
        if channel is not None:
            self._order.begin(want.owners)
            self._serve(channel, want)
            return channel
        if len(self._waiters) >= self._max_waiters:
            raise NoWorker(f"too many calls wait for a {self._profile} worker")
        waiter = _Waiter(want)
        self._waiters.append(waiter)
        self._order.begin(want.owners)
        if self._used and self._lacks_room:
            self._retire(self._used.pop(0))
        self._grow()
        try:
            with trio.move_on_after(seconds):
                await waiter.arrived.wait()
        except trio.Cancelled:
            if waiter.channel is not None:
                self.release(waiter.channel, want)
            raise
        finally:
            if waiter.channel is None:
                self._waiters.remove(waiter)
                self._order.end(want.owners)
        if waiter.channel is None:
            raise NoWorker(f"no {self._profile} worker came free in {seconds:g} s")
        return waiter.channel

    def release(self, channel: WorkerChannel, want: Want, *, reuse: bool = True) -> None:
        """Take a worker back after a call, or after none; decides from its state what becomes of it."""
        self._order.end(want.owners)
        channel.users -= 1
        if self._members.get(channel.worker_id) is not channel:
            if not channel.users:
                channel.close()
        elif channel.is_abandoned or channel.lost is not None:
            self.discard(channel, channel.lost or "its call was abandoned")
        elif channel.users:
            self._offer_room(channel)
        elif not channel.is_leaving and not channel.is_clean:
            self.discard(channel, "spoke out of turn")
        elif channel.is_leaving:
            self._let_go(channel)
        else:
            self._return(channel, reuse=reuse)

    def _return(self, channel: WorkerChannel, *, reuse: bool = True) -> None:
        """A worker has nothing to do."""
        channel.is_slow = False
        if not reuse or channel.attached.generation < self._generation:
            self._retire(channel)
        else:
            self._offer(channel)

    def greeted(self, channel: WorkerChannel) -> None:
        """A fresh worker has said that it is ready."""
        if self._members.get(channel.worker_id) is not channel:
            channel.close()
        elif not channel.is_reusable:
            self.discard(channel, channel.lost or "spoke out of turn")
        else:
            self._return(channel)

    def attach(self, channel: WorkerChannel) -> None:
        """Count a worker that has not been greeted yet."""
        self._members[channel.worker_id] = channel
        if self._asked:
            self._asked.popleft()

    def discard(self, channel: WorkerChannel, reason: str) -> None:
        """Close the channel of a worker that cannot be trusted and have it killed."""
        is_news = channel.lost != DISCARDED
        channel.close()
        channel.lost = DISCARDED
        if is_news and channel.worker_id in self._members:
            log.warning("worker lost", worker_id=channel.worker_id, reason=reason)
            if not channel.is_killed:
                channel.is_killed = True
                self._kill(channel.worker_id, reason)

    def gone(self, worker_id: str) -> None:
        """Forget a worker whose process has ended, if it is one of ours."""
        channel = self._members.pop(worker_id, None)
        if channel is None:
            return
        self._leaving.pop(worker_id, None)
        for idle in (self._used, self._unused):
            if channel in idle:
                idle.remove(channel)
                channel.close()
        # One that is busy ends by itself: what it sent before its end is still to be read.
        self._grow()

    def require_generation(self, generation: int) -> None:
        """Retire, as soon as they are idle, workers that have seen fewer module loads than `generation`."""
        self._generation = max(generation, self._generation)
        for channel in list(self._all_idle()):
            if channel.attached.generation < self._generation:
                self._remove_idle(channel)
                self._retire(channel)

    def tend(self, idle_seconds: float) -> None:
        """Periodic work: discard idle workers that spoke, retire those above `min_spare`, repeat overdue requests."""
        now = trio.current_time()
        for channel in sorted(self._all_idle(), key=lambda idle: idle.idle_since):
            if not channel.is_reusable:
                self._remove_idle(channel)
                self.discard(channel, "spoke or left while idle")
            elif self._staying > self._settings.min_spare and channel.idle_since + idle_seconds <= now:
                self._remove_idle(channel)
                self._retire(channel)
        for worker_id in [
            name for name, since in self._leaving.items() if since + self._deadlines.leave_seconds <= now
        ]:
            del self._leaving[worker_id]
            self._kill(worker_id, "did not leave when retired")
        while self._asked and self._asked[0] + self._deadlines.ask_seconds <= now:
            self._asked.popleft()
        self._grow()

    def close(self) -> None:
        """Close every channel: the workers see the end of theirs and leave."""
        for channel in self._members.values():
            channel.close()

    @property
    def _staying(self) -> int:
        return len(self._members) - len(self._leaving)

    @property
    def _coming(self) -> int:
        return len(self._asked) + sum(1 for channel in self._members.values() if channel.is_starting)

    @property
    def _lacks_room(self) -> bool:
        """True when a call waits for a fresh worker and none can come unless a used one leaves."""
        fresh = sum(1 for waiter in self._waiters if waiter.want.is_fresh)
        is_full = len(self._members) + len(self._asked) >= self._settings.max
        return is_full and fresh > self._coming + len(self._leaving)

    def _all_idle(self) -> Iterator[WorkerChannel]:
        yield from self._used
        yield from self._unused

    def _remove_idle(self, channel: WorkerChannel) -> None:
        (self._used if channel.calls else self._unused).remove(channel)

    def _take(self, wants_fresh: bool) -> WorkerChannel | None:
        # Used ones first: they are warm, and isolated calls need the others. The latest first: the rest may retire.
        for idle in (self._unused,) if wants_fresh else (self._used, self._unused):
            while idle:
                channel = idle.pop()
                if channel.is_reusable:
                    return channel
                self.discard(channel, "spoke or left while idle")
        return None

    def _with_room(self) -> WorkerChannel | None:
        """The worker that has the fewest calls to run, among those that can be given one more."""
        busy = [one for one in self._members.values() if one.users]
        return self._least_busy(busy) if self._may_give_ahead else None

    def _behind_brief_ones(self) -> WorkerChannel | None:
        """Where as many workers are busy as can run at once: the one with the fewest calls, all of them brief. One more
        that wakes up for such a call would only take the processor, and its caches, from those."""
        busy = [one for one in self._members.values() if one.users]
        if len(busy) < self._abreast or not self._may_give_ahead:
            return None
        return self._least_busy([one for one in busy if one.is_brief])

    def _least_busy(self, busy: list[WorkerChannel]) -> WorkerChannel | None:
        return min((one for one in busy if self._has_room(one)), key=lambda one: one.users, default=None)

    @property
    def _may_give_ahead(self) -> bool:
        # A worker that were given calls ahead without end would never come free for a call that needs it alone.
        return all(waiter.want.is_patient for waiter in self._waiters)

    def _has_room(self, channel: WorkerChannel) -> bool:
        return (
            0 < channel.users < MAX_AHEAD
            and channel.is_shared
            and not channel.is_slow
            and not channel.is_leaving
            and channel.lost is None
            and channel.attached.generation >= self._generation
        )

    def _serve(self, channel: WorkerChannel, want: Want) -> None:
        channel.users += 1
        channel.is_shared = want.is_patient
        channel.is_brief = want.is_brief and (channel.is_brief or channel.users == 1)
        self._order.serve(want.owners)

    def _hand(self, waiter: _Waiter, channel: WorkerChannel) -> None:
        self._waiters.remove(waiter)
        waiter.channel = channel
        self._serve(channel, waiter.want)
        waiter.arrived.set()

    def _in_turn(self) -> list[_Waiter]:
        return sorted(self._waiters, key=lambda waiter: self._order.last(waiter.want.owners))

    def _offer(self, channel: WorkerChannel) -> None:
        """An idle worker: to the first who can use it, and, ahead, to others as long as it has room."""
        for waiter in self._in_turn():
            if waiter.want.is_fresh and channel.calls:
                if self._lacks_room:
                    self._retire(channel)
                    return
                continue
            self._hand(waiter, channel)
            self._offer_room(channel)
            return
        channel.idle_since = trio.current_time()
        (self._used if channel.calls else self._unused).append(channel)

    def _offer_room(self, channel: WorkerChannel) -> None:
        """A worker that has calls to run may have room for one more."""
        while self._has_room(channel) and self._may_give_ahead:
            waiter = next((one for one in self._in_turn() if one.want.is_patient), None)
            if waiter is None:
                return
            self._hand(waiter, channel)

    def _retire(self, channel: WorkerChannel) -> None:
        if channel.retire():
            self._let_go(channel)
        else:
            self.discard(channel, "could not be retired")

    def _let_go(self, channel: WorkerChannel) -> None:
        channel.close()
        if channel.worker_id in self._members:
            self._leaving[channel.worker_id] = trio.current_time()

    def _grow(self) -> None:
        wanted = min(
            len(self._waiters) - self._coming, self._settings.max - len(self._members) - len(self._asked)
        )  # fmt: skip
        for _ in range(wanted):
            self._asked.append(trio.current_time())
            self._need()
