"""Workers by count: how many each front has of each profile, which are starting, which get a successor.

Decides in one step per event and does no I/O but queueing messages; the template forks and reaps. A front's demand is
bounded by `max`, whatever it asks for. Workers of a front that ended end with it.
"""

import signal
import socket
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import trio

from ipc.channel.packets import packet_pair
from ipc.effects import PROFILES
from ipc.messages.control import AttachWorker, KillWorker, WorkerGone, WorkerServes
from ipc.messages.forking import KillForked, SpawnWorker, WorkerExited, WorkerStarted
from ipc.messages.message import Message
from ipc.messages.notarising import TieWorker, WorkerBroke, WorkerEnded
from ipc.process.exits import Exit
from ipc.settings import PoolSettings
from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.fd_passing import copies
from supervisor.keepers.fronts import FrontLife
from supervisor.logs import log
from supervisor.state import SupervisorState
from supervisor.systemd.cgroups import WorkerLimits, delegated_folder

ORPHANED_SECONDS = 0.05
SPAWN_SECONDS = 30.0
"""A template that has not forked by then is stuck."""
AGAIN_SECONDS = 0.25
"""The pause after no descriptor was free for a worker."""

Send = Callable[[Message, tuple[int, ...]], None]
Tell = Callable[..., None]
"""Post a message, with descriptors, to the notary of now; without one nothing happens."""


@dataclass
class Worker:
    """One worker from the order to fork it until its end is reported."""

    worker_id: str
    profile: str
    front: FrontLife | None
    """None: its front is gone, and so must it be."""
    channel: socket.socket | None
    """The front's end, until it is handed over."""
    attesting: tuple[socket.socket, socket.socket]
    """Both ends of its channel with the notary, the notary's first. Kept, so that a notary which follows one that died
    finds what was said meanwhile."""
    is_asked_to_end: bool = False
    has_served: bool = False
    """It has greeted its front. A worker that ends before that probably could not work at all."""
    pid: int = 0
    """Once it is forked."""
    started: trio.Event = field(default_factory=trio.Event)


class WorkerSupply:
    """All workers of all fronts. Closed while there is no template that has loaded what its predecessors had."""

    def __init__(
        self, state: SupervisorState, nursery: trio.Nursery, send: Send, on_stuck: Callable[[], None], tell: Tell
    ) -> None:  # fmt: skip
        """`send` goes to the template, `tell` to the notary; `on_stuck` is called when the template does not fork."""
        self._tell = tell
        self._state = state
        self._nursery = nursery
        self._send = send
        self._on_stuck = on_stuck
        self._workers: dict[str, Worker] = {}
        self._fronts: list[FrontLife] = []
        self._numbers: Counter[str] = Counter()
        self._unmet: defaultdict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._backoff = {
            profile: Backoff(step=0.05, ceiling=1.0, burst=1000, window=10.0) for profile in PROFILES
        }  # fmt: skip
        self._pausing: set[str] = set()
        self._is_open = False
        self._cgroups = WorkerLimits(delegated_folder())

    # ----------------------------------------------------------------- fronts

    def add_front(self, front: FrontLife) -> None:
        """A front has its modules: give it workers."""
        if front not in self._fronts:
            self._fronts.append(front)
        self._fill_all()

    def remove_front(self, front: FrontLife) -> None:
        """A front ended: end its workers too, since their channels ended with it."""
        if front in self._fronts:
            self._fronts.remove(front)
        for worker in [one for one in self._workers.values() if one.front is front]:
            worker.front = None
            self._forget_channel(worker)
            self._end(worker)
        for profile in PROFILES:
            self._unmet.pop((front.front_id, profile), None)

    def need(self, front: FrontLife, profile: str) -> None:
        """One worker more for a front, now or as soon as its pool has room."""
        if profile not in PROFILES:
            log.warning(f"{front.name} asked for workers of a profile that does not exist")
            return
        asked = self._unmet[front.front_id, profile]
        if len(asked) < self._pool(profile).most_workers:
            asked.append(trio.current_time())
        self._fill(front, profile)

    def note_serving(self, front: FrontLife, message: WorkerServes) -> None:
        """A front was greeted by one of its own workers."""
        worker = self._workers.get(message.worker_id)
        if worker is not None and worker.front is front:
            worker.has_served = True
            self._state.standings.worker_serves(f"worker {worker.profile}")

    def kill(self, front: FrontLife, message: KillWorker) -> None:
        """A front gives up one of its own workers."""
        worker = self._workers.get(message.worker_id)
        if worker is not None and worker.front is front:
            log.warning(f"worker {worker.worker_id} is killed", reason=message.reason)
            self._end(worker)

    def kill_broken(self, message: WorkerBroke) -> None:
        """The notary can't believe a worker."""
        worker = self._workers.get(message.worker_id)
        if worker is not None:
            log.error(f"worker {worker.worker_id} is killed", reason=message.reason)
            self._end(worker)

    def tie_all(self) -> None:
        """A fresh notary: give it the channels of all workers. Raises OSError."""
        for worker in self._workers.values():
            self._tie(worker)

    def all(self) -> list[Worker]:
        """Every worker, in the order in which they were ordered."""
        return list(self._workers.values())

    def has_spares(self, front: FrontLife) -> bool:
        """Whether the front holds as many workers of every profile as its pools have at least."""
        held = Counter(one.profile for one in self._workers.values() if one.front is front and one.channel is None)
        return all(held[profile] >= self._pool(profile).min_spare for profile in PROFILES)

    # ----------------------------------------------------------------- template

    def open(self) -> None:
        """A template can fork."""
        self._is_open = True
        self._fill_all()

    def close(self) -> None:
        """The template ended, and its workers with it (PDEATHSIG)."""
        self._is_open = False
        for worker in list(self._workers.values()):
            self._remove(worker, -signal.SIGKILL)

    def answer_started(self, message: WorkerStarted, generation: int) -> None:
        """A fork succeeded: hand the channel to the front. `generation` counts over all templates."""
        worker = self._workers.get(message.worker_id)
        if worker is None:
            return
        worker.started.set()
        self._cgroups.hold(worker.worker_id, message.pid)
        worker.pid = message.pid
        if worker.front is None or worker.channel is None or worker.is_asked_to_end:
            self._end(worker)
            return
        attach = AttachWorker(worker.worker_id, worker.profile, message.pid, generation)
        worker.front.post(attach, (worker.channel.detach(),))
        worker.channel = None
        self._state.condition.notify_all()

    def answer_exited(self, message: WorkerExited) -> None:
        """A worker ended: tell its front, and replace it where the pool is too small."""
        worker = self._workers.get(message.worker_id)
        if worker is None:
            return
        front, status = worker.front, message.status
        self._remove(worker, status)
        is_expected = worker.is_asked_to_end or status in (Exit.RECYCLED, Exit.ORPHANED)
        backoff = self._backoff[worker.profile]
        delay = backoff.delay(trio.current_time(), had_served=is_expected or worker.has_served)
        if status == Exit.ORPHANED:
            # Its channel closed: its front has probably ended, and the supervisor notices in a moment.
            delay = max(delay, ORPHANED_SECONDS)
        if not is_expected and self._state.lifecycle.may_replace:
            log.warning(f"worker {worker.worker_id} ended", reason=reason_of(status), pid=message.pid)
            self._state.standings.worker_ended(
                f"worker {worker.profile}", reason_of(status), is_loop=backoff.is_loop, is_storm=backoff.is_storm
            )
        if self._state.ends_all("worker", f"worker {worker.worker_id}", status, backoff) or front is None:
            return
        if delay:
            self._pausing.add(worker.profile)
            self._nursery.start_soon(self._fill_later, worker.profile, delay)
        else:
            self._fill(front, worker.profile)

    # ----------------------------------------------------------------- pools

    def _pool(self, profile: str) -> PoolSettings:
        pool = getattr(self._state.settings.workers, profile)
        assert isinstance(pool, PoolSettings)
        return pool

    def _count(self, front: FrontLife, profile: str) -> int:
        return sum(one.front is front and one.profile == profile for one in self._workers.values())

    async def _fill_later(self, profile: str, delay: float) -> None:
        await trio.sleep(delay)
        self._pausing.discard(profile)
        self._fill_all()

    def _fill_all(self) -> None:
        for front in self._fronts:
            for profile in PROFILES:
                self._fill(front, profile)

    def _fill(self, front: FrontLife, profile: str) -> None:
        if not self._is_open or profile in self._pausing or front not in self._fronts:
            return
        if not self._state.lifecycle.may_replace:
            return
        pool, asked = self._pool(profile), self._unmet[front.front_id, profile]
        count = self._count(front, profile)
        # A call that has waited longer than this has been answered without a worker.
        while asked and trio.current_time() - asked[0] > self._state.settings.limits.worker_wait_seconds:
            asked.popleft()
        for _ in range(min(max(pool.min_spare, count + len(asked)), pool.most_workers) - count):
            try:
                self._spawn(front, profile)
            except OSError as error:  # the supervisor lacks descriptors; the front's channel is sound
                log.error("a worker can't be started", profile=profile, cause=str(error))
                self._pausing.add(profile)
                self._nursery.start_soon(self._fill_later, profile, AGAIN_SECONDS)
                return
            if asked:
                asked.popleft()

    def _spawn(self, front: FrontLife, profile: str) -> None:
        """Raises OSError if no descriptor is free; then no worker was started."""
        with ExitStack() as opened:
            fronts_end, workers_end = map(opened.enter_context, socket.socketpair())
            attesting = packet_pair()
            for end in attesting:
                opened.enter_context(end)
            attested, *tied = copies(attesting[1].fileno(), *(end.fileno() for end in attesting))
            opened.pop_all()
        self._numbers[profile] += 1
        number = self._numbers[profile]
        worker = Worker(f"{profile}-{number}", profile, front, fronts_end, attesting)
        self._workers[worker.worker_id] = worker
        self._tell(TieWorker(worker.worker_id, front.front_id), tuple(tied))
        title = f"gateway: worker {profile} {number}"
        self._send(SpawnWorker(worker.worker_id, profile, title), (workers_end.detach(), attested))
        self._nursery.start_soon(self._expect, worker)

    def _tie(self, worker: Worker) -> None:
        if worker.front is not None:
            ends = copies(*(end.fileno() for end in worker.attesting))
            self._tell(TieWorker(worker.worker_id, worker.front.front_id), ends)

    async def _expect(self, worker: Worker) -> None:
        with trio.move_on_after(SPAWN_SECONDS) as deadline:
            await worker.started.wait()
        if deadline.cancelled_caught and worker.worker_id in self._workers:
            self._on_stuck()

    def _end(self, worker: Worker) -> None:
        worker.is_asked_to_end = True
        if worker.started.is_set():
            self._send(KillForked(worker.worker_id), ())

    def _remove(self, worker: Worker, status: int) -> None:
        del self._workers[worker.worker_id]
        worker.started.set()
        self._cgroups.forget(worker.worker_id)
        self._forget_channel(worker)
        for end in worker.attesting:
            end.close()
        self._tell(WorkerEnded(worker.worker_id, reason_of(status)))
        if worker.front is not None:
            worker.front.post(WorkerGone(worker.worker_id, reason_of(status)))

    @staticmethod
    def _forget_channel(worker: Worker) -> None:
        if worker.channel is not None:
            worker.channel.close()
            worker.channel = None
