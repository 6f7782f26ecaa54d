"""Pools over real worker processes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trio
from msgspec.structs import replace

from frontend.deadlines import PoolDeadlines
from frontend.pool.pool import Pools
from frontend.pool.profile import MAX_WAITERS
from ipc.settings import PoolSettings, WorkerSettings
from tests.support.echo_template import EchoProcess
from tests.support.patience import PATIENT
from tests.support.worker_desk import DEADLINE, Desk, Pooling, until


@pytest.fixture
def processes() -> Iterator[list[EchoProcess]]:
    """Processes that end with the test, whatever becomes of it."""
    started: list[EchoProcess] = []
    yield started
    for process in started:
        process.kill()
        process.wait(DEADLINE)


@pytest.fixture
def pooling(processes: list[EchoProcess]) -> Pooling:
    """Starts pools; see Pooling."""

    @asynccontextmanager
    async def start(
        workers: int = 0, *, idle_seconds: float = 60.0, deadlines: PoolDeadlines = PATIENT.pool,
        max_waiters: int = MAX_WAITERS, abreast: int = 1, profile: str = "compute",
        most_workers: int | None = None, **sizes: int,
    ) -> AsyncIterator[Desk]:  # fmt: skip
        desk = Desk()
        settings = replace(
            WorkerSettings(idle_seconds=idle_seconds), **{profile: PoolSettings(**sizes, workers=most_workers)}
        )
        desk.pools = Pools(settings, desk.need, desk.kill, desk.greeted.append, deadlines, max_waiters, abreast)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(desk.pools.run)
                nursery.start_soon(desk.watch)
                for _ in range(workers):
                    desk.start(profile)
                await until(lambda: desk.idle(profile) == workers)
                yield desk
                nursery.cancel_scope.cancel()
        finally:
            processes.extend(desk.processes.values())
            desk.notary.close()

    return start
