"""All workers of this front: one pool per profile, and leases on single workers.

Greets workers that come, and tends those that are idle. Never starts or ends a process, and never waits for the
supervisor: what is asked of it is queued by the front's control channel (frontend/control.py).
"""

import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from types import TracebackType
from typing import NamedTuple

import trio

from frontend.deadlines import PoolDeadlines
from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.profile import MAX_WAITERS, NoWorker, ProfilePool
from frontend.pool.short_calls import ShortCallEstimate
from frontend.pool.waiting import Want
from frontend.telemetry.logs import log
from ipc.effects import PROFILES
from ipc.messages.control import AttachWorker
from ipc.settings import WorkerSettings

__all__ = ["Census", "NoWorker", "Pools", "WorkerLease", "WorkerLost"]

AHEAD = frozenset({"compute"})
"""Profiles whose workers are given calls ahead: a call that waits for an upstream must not hold up those behind it."""

CORES = len(os.sched_getaffinity(0))


class Census(NamedTuple):
    """One profile now: idle workers, all that are attached, and calls that wait."""

    idle: int
    members: int
    waiting: int


class WorkerLease:
    """`async with` this: one worker for one call. A lease that ends during a call has the worker killed."""

    __slots__ = ("_channel", "_pool", "_seconds", "_want")

    def __init__(self, pool: ProfilePool, want: Want, seconds: float) -> None:
        self._pool = pool
        self._want = want
        self._seconds = seconds
        self._channel: WorkerChannel | None = None

    async def __aenter__(self) -> WorkerChannel:
        self._channel = await self._pool.acquire(self._want, self._seconds)
        return self._channel

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Give the worker back; once is enough."""
        channel, self._channel = self._channel, None
        if channel is not None:
            self._pool.release(channel, self._want, reuse=not (self._want.is_fresh and channel.calls))


class Pools:
    """Start `run` in the front's nursery before anything is attached or leased."""

    def __init__(
        self, settings: WorkerSettings, need: Callable[[str], None], kill: Callable[[str, str], None],
        serves: Callable[[str], None], deadlines: PoolDeadlines = PoolDeadlines(), max_waiters: int = MAX_WAITERS,
        abreast: int = CORES,
    ) -> None:  # fmt: skip
        """`need(profile)` asks for a worker, `kill(id, reason)` for the end of one, `serves(id)` is called for each
        greeted worker; none waits. `max_waiters`: calls that wait for one profile. `abreast`: workers of one profile
        that can run at once; while so many are busy, brief calls wait behind theirs instead of waking another one."""
        self.brevity = ShortCallEstimate()
        self.deadlines = deadlines
        self._kill = kill
        self._serves = serves
        self._idle_seconds = settings.idle_seconds
        self._nursery: trio.Nursery | None = None
        self._pools = {
            profile: ProfilePool(
                profile, getattr(settings, profile), partial(need, profile), kill, deadlines, max_waiters, abreast
            )
            for profile in PROFILES
        }

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Greet and tend until cancelled; then close all channels. Raises what `need` and `kill` raise."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await self._tend()
        finally:
            self._nursery = None
            for pool in self._pools.values():
                pool.close()

    def attach(self, message: AttachWorker, fd: int) -> None:
        """Take over a fresh worker's channel (the descriptor is ours from now on). It serves once it is greeted."""
        sock = socket.socket(fileno=fd)
        pool = self._pools.get(message.profile)
        if pool is None or self._nursery is None:
            log.warning("a worker came that has no pool here", worker_id=message.worker_id, profile=message.profile)
            sock.close()
            return
        channel = WorkerChannel(message, sock, self.deadlines)
        pool.attach(channel)
        self._nursery.start_soon(self._greet, pool, channel)

    def give_up(self, worker_id: str, reason: str) -> None:
        """End a worker that can't be attached here."""
        self._kill(worker_id, reason)

    def gone(self, worker_id: str) -> None:
        """A worker's process has ended (WorkerGone). A call it was serving ends with WorkerLost by itself."""
        for pool in self._pools.values():
            pool.gone(worker_id)

    def require_generation(self, generation: int) -> None:
        """Use only workers that have seen at least this many module loads; others retire as they come free."""
        for pool in self._pools.values():
            pool.require_generation(generation)

    def lease(
        self, profile: str, isolation: str, wait_seconds: float, owners: tuple[str, ...] = (), *,
        is_patient: bool = False, kind: str = "",
    ) -> WorkerLease:  # fmt: skip
        """`async with pools.lease(…) as worker: await worker.give(call)`.

        `isolation` "process": a worker that has never served a call and never serves another; "shared": one that runs
        calls of this action alone, if the call is patient. `owners` own the call, the larger group first: of those who
        wait, the least recently served is next. `is_patient`: a worker will do that was given other calls.
        `kind`: the action; its calls take about as long as each other (see `brevity`). Raises NoWorker on entering when
        none comes free in `wait_seconds`.
        """
        pool = self._pools.get(profile)
        if pool is None:
            raise NoWorker(f"there are no {profile} workers")
        is_fresh = isolation == "process"
        is_shared = is_patient and isolation == "shared"
        is_patient = is_patient and not is_fresh and profile in AHEAD
        is_brief = is_patient and self.brevity.is_brief(kind)
        return WorkerLease(pool, Want(owners, is_fresh, is_patient, is_brief, kind, is_shared), wait_seconds)

    def kill(self, worker: WorkerChannel, reason: str) -> None:
        """End a worker that has a call: the notary learns of it, and ends the call."""
        worker.give_up(reason)
        if not worker.is_killed:
            worker.is_killed = True
            self._kill(worker.worker_id, reason)

    def cut(self, worker: WorkerChannel, call_id: str, reason: str) -> None:
        """End a worker whose call is given up, unless it runs calls of others beside that one: it ends by itself."""
        if worker.gives_up(call_id) or not worker.action:
            self.kill(worker, reason)
        else:
            worker.renounce(call_id)
            if self._nursery is not None:
                self._nursery.start_soon(worker.outlast, call_id)

    def renew(
        self, worker: WorkerChannel, call_id: str, tokens: Collection[str],
        renewed: Callable[[str], Awaitable[Mapping[str, str]]],
    ) -> None:  # fmt: skip
        """Answer the worker's question for another token of this call, once it asks. `tokens` are the secrets that have
        one; `renewed` gives the values for the name of one, and raises nothing."""
        worker.expect_refusal(call_id, tokens)
        if self._nursery is not None:
            self._nursery.start_soon(self._renew, worker, call_id, renewed)

    def census(self) -> dict[str, Census]:
        """Profile -> what it has now."""
        return {name: Census(pool.idle, pool.members, pool.waiting) for name, pool in self._pools.items()}

    async def _greet(self, pool: ProfilePool, channel: WorkerChannel) -> None:
        try:
            await channel.greet()
        except WorkerLost as error:
            pool.discard(channel, error.reason)
        except trio.Cancelled:  # its pool may have forgotten it: then nothing else closes it
            channel.close()
            raise
        else:
            self._serves(channel.worker_id)
            pool.greeted(channel)

    async def _renew(
        self, worker: WorkerChannel, call_id: str, renewed: Callable[[str], Awaitable[Mapping[str, str]]]
    ) -> None:
        try:
            name = await worker.refused_token(call_id)
            values = {} if name is None else await renewed(name)
        except WorkerLost as error:
            self.kill(worker, error.reason)
            return
        if values and worker.lost is None and worker.is_running(call_id):
            worker.give_secrets(call_id, values)
            if worker.lost is not None:
                self.kill(worker, worker.lost)

    async def _tend(self) -> None:
        pause = max(self.deadlines.min_tend_seconds, min(self.deadlines.tend_seconds, self._idle_seconds))
        while True:
            await trio.sleep(pause)
            for pool in self._pools.values():
                pool.tend(self._idle_seconds)
