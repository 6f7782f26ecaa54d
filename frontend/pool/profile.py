"""The workers of one profile and the calls that wait for one. Decides; touches no process and waits for no channel.

Guarantees: waiting callers are served in the order of least recent service, calls of one caller in the order of
arrival, so that one caller's queue never delays all others; no action and no principal takes the last places of the
pool (frontend/pool/places.py); a worker runs one call at a time, and has more only where their callers allow it: ahead,
while none of its calls takes long, or beside each other, all of one action; a worker that broke the protocol, was used
for an isolated call or has seen too few module loads is never handed out again; calls that hold a place and processes
are both bounded. A worker counts until the supervisor says it is gone, so that two processes never share a
place.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

import trio

from frontend.deadlines import PoolDeadlines
from frontend.pool.busy import BusyWorkers
from frontend.pool.channel import WorkerChannel
from frontend.pool.order import ServiceOrder
from frontend.pool.places import HeldPlaces
from frontend.pool.waiting import WaitingCall, WaitingCalls, Want
from frontend.telemetry.logs import log
from ipc.limits import MAX_AHEAD
from ipc.settings import PoolSettings

MAX_WAITERS = 1024
"""Calls that wait for one profile; one more is refused at once."""
MAX_STARTING: Final = 4
"""Workers that are on their way at once: one more is asked for when one of these has come."""
DISCARDED = "discarded"


class NoWorker(Exception):
    """No worker came free in time, or too many calls wait for one. No worker was given the call."""


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
        self._starting: set[WorkerChannel] = set()
        self._busy = BusyWorkers()
        self._used: list[WorkerChannel] = []
        self._unused: list[WorkerChannel] = []
        self._leaving: dict[str, float] = {}
        self._asked: deque[float] = deque()
        self._order = ServiceOrder()
        self._waiting = WaitingCalls(self._order)
        self._places = HeldPlaces(settings.most)
        self._held_workers = HeldPlaces(settings.most_workers)
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
        return len(self._waiting)

    async def acquire(self, want: Want, seconds: float) -> WorkerChannel:
        """A worker for one call, which must be given to `release` in any case. Raises NoWorker after `seconds`.

        Returns at once, without a checkpoint, when one is idle, or has room for a call that is patient.
        """
        # A worker that comes free is offered to waiting calls first: none of them could use what is found here.
        channel = self._find(want)
        if channel is not None:
            self._order.begin(want.owners)
            self._serve(channel, want)
            return channel
        if len(self._waiting) >= self._max_waiters:
            raise NoWorker(f"too many calls wait for a {self._profile} worker")
        waiting = WaitingCall(want)
        self._waiting.add(waiting)
        self._order.begin(want.owners)
        self._make_room()
        self._grow()
        try:
            with trio.move_on_after(seconds):
                await waiting.arrived.wait()
        except trio.Cancelled:
            if waiting.channel is not None:
                self.release(waiting.channel, want)
            raise
        finally:
            if waiting.channel is None:
                self._waiting.remove(waiting)
                self._order.end(want.owners)
        if waiting.channel is None:
            raise NoWorker(f"no {self._profile} worker came free in {seconds:g} s")
        return waiting.channel

    def release(self, channel: WorkerChannel, want: Want, *, reuse: bool = True) -> None:
        """Take a worker back, used or not, and keep, retire or end it by its state."""
        self._order.end(want.owners)
        channel.users -= 1
        if want.is_shared:
            self._places.give_back(want.action, want.principal)
        if not channel.users:
            first = self._busy.end(channel)
            self._held_workers.give_back(first.action, first.principal)
            if not first.is_shared:
                self._places.give_back(first.action, first.principal)
        if self._members.get(channel.worker_id) is not channel:
            if not channel.users:
                channel.close()
        elif channel.lost is not None:
            self.discard(channel, channel.lost)
        elif channel.is_abandoned and not (channel.users and channel.action):  # else others' calls go on beside it
            self.discard(channel, "its call was abandoned")
        elif not channel.users:
            self._take_back(channel, reuse=reuse)
        self._hand_out()

    def _take_back(self, channel: WorkerChannel, *, reuse: bool) -> None:
        if not channel.is_leaving and not channel.is_clean:
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
            return
        channel.idle_since = trio.current_time()
        (self._used if channel.calls else self._unused).append(channel)

    def greeted(self, channel: WorkerChannel) -> None:
        """A fresh worker has said that it is ready."""
        self._starting.discard(channel)
        if self._members.get(channel.worker_id) is not channel:
            channel.close()
        elif not channel.is_reusable:
            self.discard(channel, channel.lost or "spoke out of turn")
        else:
            self._return(channel)
        self._hand_out()

    def attach(self, channel: WorkerChannel) -> None:
        """Count a worker that has not been greeted yet."""
        self._members[channel.worker_id] = channel
        self._starting.add(channel)
        if self._asked:
            self._asked.popleft()

    def discard(self, channel: WorkerChannel, reason: str) -> None:
        """Close the channel of a worker that cannot be trusted and have it killed."""
        is_news = channel.lost != DISCARDED
        self._starting.discard(channel)
        channel.close()
        channel.lost = DISCARDED
        if is_news and channel.worker_id in self._members:
            log.warning("worker lost", worker_id=channel.worker_id, reason=reason)
            if not channel.is_killed:
                channel.is_killed = True
                self._kill(channel.worker_id, reason)

    def gone(self, worker_id: str) -> None:
        """Forget a worker of this pool whose process has ended."""
        channel = self._members.pop(worker_id, None)
        if channel is None:
            return
        self._leaving.pop(worker_id, None)
        self._starting.discard(channel)
        for idle in (self._used, self._unused):
            if channel in idle:
                idle.remove(channel)
                channel.close()
        # A busy worker ends by itself: its last messages must be read first.
        self._grow()

    def require_generation(self, generation: int) -> None:
        """Retire, as soon as they are idle, workers that have seen fewer module loads than `generation`."""
        self._generation = max(generation, self._generation)
        self._busy.require_generation(self._generation)
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
        return len(self._asked) + len(self._starting)

    @property
    def _lacks_room(self) -> bool:
        """True when a call waits for a fresh worker and none can come unless a used one leaves."""
        if len(self._members) + len(self._asked) < self._settings.most_workers:
            return False
        fresh = sum(count for want, count in self._waiting.kinds() if want.is_fresh and self._may_have_worker(want))
        return fresh > self._coming + len(self._leaving)

    def _all_idle(self) -> Iterator[WorkerChannel]:
        yield from self._used
        yield from self._unused

    def _remove_idle(self, channel: WorkerChannel) -> None:
        (self._used if channel.calls else self._unused).remove(channel)

    def _take(self, want: Want) -> WorkerChannel | None:
        if not self._may_have_worker(want):
            return None
        # Used ones first: they are warm, and isolated calls need the others. The latest first: the rest may retire.
        for idle in (self._unused,) if want.is_fresh else (self._used, self._unused):
            while idle:
                channel = idle.pop()
                if channel.is_reusable:
                    return channel
                self.discard(channel, "spoke or left while idle")
        return None

    def _may_take(self, want: Want) -> bool:
        return self._places.may_take(want.action, want.principal)

    def _may_have_worker(self, want: Want) -> bool:
        """True if it may have a worker without a call."""
        return self._may_take(want) and self._held_workers.may_take(want.action, want.principal)

    def _is_due(self, want: Want) -> bool:
        """True for a call that may have a worker, or may as soon as one comes free."""
        return all(one.is_due(want.action, want.principal) for one in (self._places, self._held_workers))

    def _find(self, want: Want) -> WorkerChannel | None:
        """A worker for this call now; None where it has to wait."""
        if want.is_shared:
            return (self._busy.fullest(want.action) or self._take(want)) if self._may_take(want) else None
        channel = self._behind_brief_ones() if want.is_brief else None
        if channel is None:
            channel = self._take(want)
        if channel is None and want.is_patient and self._may_give_ahead:
            channel = self._busy.emptiest()
        return channel

    def _behind_brief_ones(self) -> WorkerChannel | None:
        """Where as many workers are busy as can run at once: one whose calls are all brief. One more worker that wakes
        up for such a call would only take the processor, and its caches, from those."""
        if self._busy.alone < self._abreast or not self._may_give_ahead:
            return None
        return self._busy.emptiest(is_brief=True)

    @property
    def _may_give_ahead(self) -> bool:
        # A worker that were given calls ahead without end would never come free for a call that needs it alone.
        return all(want.is_patient or not self._is_due(want) for want, _ in self._waiting.kinds())

    def _serve(self, channel: WorkerChannel, want: Want) -> None:
        channel.users += 1
        if channel.users == 1:
            self._busy.begin(channel, want)
            self._held_workers.take(want.action, want.principal)
        if channel.users == 1 or want.is_shared:
            self._places.take(want.action, want.principal)
        channel.is_shared = want.is_patient
        channel.is_brief = want.is_brief and (channel.is_brief or channel.users == 1)
        self._order.serve(want.owners)

    def _hand_out(self) -> None:
        """Serve calls that wait, as long as there is a worker for one of them."""
        while len(self._waiting) and self._serve_next():
            pass
        self._grow()

    def _serve_next(self) -> bool:
        for waiting in self._waiting.in_turn():
            channel = self._find(waiting.want)
            if channel is not None:
                self._waiting.remove(waiting)
                waiting.channel = channel
                self._serve(channel, waiting.want)
                waiting.arrived.set()
                return True
            if waiting.want.is_fresh and self._make_room():
                return True
        return False

    def _make_room(self) -> bool:
        """Retire an idle worker where a call waits for a fresh one and there is no room for that. True if it was."""
        if not self._used or not self._lacks_room:
            return False
        self._retire(self._used.pop(0))
        return True

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
        """Ask for workers that calls wait for: a few at a time, none that a call can't have or that would not help."""
        if not len(self._waiting):
            return
        most = min(MAX_STARTING - self._coming, self._settings.most_workers - len(self._members) - len(self._asked))
        if most <= 0:
            return
        for _ in range(min(self._wanted - self._coming, most)):
            self._asked.append(trio.current_time())
            self._need()

    @property
    def _wanted(self) -> int:
        """Workers that calls wait for, beside those that are idle."""
        is_busy_with_brief_ones = self._busy.brief >= self._abreast
        fresh = others = 0
        shared: Counter[str] = Counter()
        for want, count in self._waiting.kinds():
            if not self._may_have_worker(want) or (want.is_brief and is_busy_with_brief_ones):
                continue
            if want.is_fresh:
                fresh += count
            elif want.is_shared:
                shared[want.action] += count
            else:
                others += count
        others += sum(-(-count // MAX_AHEAD) for count in shared.values())
        return fresh + max(0, others - len(self._used)) - len(self._unused)
