"""All workers of this front: one pool per profile, and leases on single workers.

Greets workers that come, and tends those that are idle. Never starts or ends a process, and never waits for the
supervisor: what is asked of it is queued by the front's control channel (frontend/control.py).
"""

import socket
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import NamedTuple

import trio

from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.profile import NoWorker, ProfilePool
from frontend.telemetry.logs import log
from ipc.messages import AttachWorker
from ipc.settings import WorkerSettings

__all__ = ["Census", "Lease", "NoWorker", "Pools", "WorkerLost"]

TEND_SECONDS, MIN_TEND_SECONDS = 1.0, 0.05


class Census(NamedTuple):
    """One profile now: idle workers, all that are attached, and calls that wait."""

    idle: int
    members: int
    waiting: int


class Lease:
    """`async with` this: one worker for one call. A lease that ends during a call has the worker killed."""

    __slots__ = ("_channel", "_is_isolated", "_owners", "_pool", "_seconds")

    def __init__(self, pool: ProfilePool, is_isolated: bool, seconds: float, owners: tuple[str, ...]) -> None:
        self._pool = pool
        self._is_isolated = is_isolated
        self._seconds = seconds
        self._owners = owners
        self._channel: WorkerChannel | None = None

    async def __aenter__(self) -> WorkerChannel:
        self._channel = await self._pool.acquire(self._is_isolated, self._seconds, self._owners)
        return self._channel

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self._pool.release(channel, reuse=not (self._is_isolated and channel.calls))


class Pools:
    """Start `run` in the front's nursery before anything is attached or leased."""

    def __init__(
        self, settings: WorkerSettings, grant_jwks: Callable[[], str],
        need: Callable[[str], None], kill: Callable[[str, str], None],
    ) -> None:  # fmt: skip
        """`grant_jwks`: what verifies grants by now. `need(profile)` asks for a worker, `kill(id, reason)` for the end
        of one; neither waits."""
        self._grant_jwks = grant_jwks
        self._idle_seconds = settings.idle_seconds
        self._nursery: trio.Nursery | None = None
        self._pools = {
            profile: ProfilePool(profile, sizes, partial(need, profile), kill)
            for profile, sizes in (("compute", settings.compute), ("http", settings.http), ("fs", settings.fs))
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
            log.warning("a worker came that nobody can use", worker_id=message.worker_id, profile=message.profile)
            sock.close()
            return
        channel = WorkerChannel(message, sock, self._grant_jwks)
        pool.attach(channel)
        self._nursery.start_soon(self._greet, pool, channel)

    def gone(self, worker_id: str) -> None:
        """A worker's process has ended (WorkerGone). A call it was serving ends with WorkerLost by itself."""
        for pool in self._pools.values():
            pool.gone(worker_id)

    def require_generation(self, generation: int) -> None:
        """Use only workers that have seen at least this many module loads; others retire as they come free."""
        for pool in self._pools.values():
            pool.require_generation(generation)

    def lease(self, profile: str, isolation: str, wait_seconds: float, owners: tuple[str, ...] = ()) -> Lease:
        """`async with pools.lease(…) as worker: result = await worker.call(call)`.

        `isolation` "process": a worker that has never served a call and never serves another. `owners` own the call,
        the larger group first: of those who wait, the least recently served is next. Raises NoWorker on
        entering when none comes free in `wait_seconds`; `call` raises WorkerLost.
        """
        pool = self._pools.get(profile)
        if pool is None:
            raise NoWorker(f"there are no {profile} workers")
        return Lease(pool, isolation == "process", wait_seconds, owners)

    def census(self) -> dict[str, Census]:
        """Profile -> what it has now."""
        return {name: Census(pool.idle, pool.members, pool.waiting) for name, pool in self._pools.items()}

    async def _greet(self, pool: ProfilePool, channel: WorkerChannel) -> None:
        try:
            await channel.greet()
        except WorkerLost as error:
            pool.discard(channel, error.reason)
        else:
            pool.release(channel)

    async def _tend(self) -> None:
        while True:
            await trio.sleep(max(MIN_TEND_SECONDS, min(TEND_SECONDS, self._idle_seconds)))
            for pool in self._pools.values():
                pool.tend(self._idle_seconds)
