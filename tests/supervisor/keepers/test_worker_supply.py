"""How soon a worker that ended has a successor: at once if it had worked, ever more slowly if none does."""

import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ipc.messages.control import WorkerServes
from ipc.messages.forking import SpawnWorker, WorkerExited, WorkerStarted
from ipc.messages.message import Message
from ipc.settings import PoolSettings, Settings, WorkerSettings
from supervisor.children.children import Children
from supervisor.keepers.fronts import FrontLife
from supervisor.keepers.worker_supply import WorkerSupply
from supervisor.programs import Programs
from supervisor.state import SupervisorState

NONE = PoolSettings(min_spare=0, max=1)
SETTINGS = Settings(
    "/nowhere", "http://gateway.test", workers=WorkerSettings(PoolSettings(min_spare=1, max=4), NONE, NONE)
)  # fmt: skip


class PlayedFront(FrontLife):
    """A front without a process, which drops its messages."""

    def __init__(self, number: int) -> None:
        self.name = self.front_id = f"front-{number}"

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        _close(fds)


class Supplied:
    """A supply of one front; the test plays the template."""

    def __init__(self, nursery: trio.Nursery) -> None:
        state = SupervisorState(SETTINGS, Programs(), Children({}))
        state.lifecycle.move("ready")
        self.spawned: list[str] = []
        self.supply = WorkerSupply(state, nursery, self._ordered, lambda: None, _tell)
        self.front = PlayedFront(1)
        self.supply.open()
        self.supply.add_front(self.front)

    def _ordered(self, message: Message, fds: tuple[int, ...]) -> None:
        _close(fds)
        if isinstance(message, SpawnWorker):
            self.spawned.append(message.worker_id)

    def start(self, worker_id: str, *, serves: bool) -> None:
        """The template has forked it; it greets its front, or does not."""
        self.supply.answer_started(WorkerStarted(worker_id, 1, 0), 0)
        if serves:
            self.supply.note_serving(self.front, WorkerServes(worker_id))

    def die(self, worker_id: str) -> None:
        """It is killed, by none of us."""
        self.supply.answer_exited(WorkerExited(worker_id, 1, -signal.SIGKILL))


def _tell(_message: Message, fds: tuple[int, ...] = ()) -> None:
    _close(fds)


def _close(fds: tuple[int, ...]) -> None:
    for descriptor in fds:
        os.close(descriptor)


@asynccontextmanager
async def supplied() -> AsyncIterator[Supplied]:
    """A supply, and all that it has started."""
    async with trio.open_nursery() as nursery:
        harness = Supplied(nursery)
        yield harness
        harness.supply.close()
        nursery.cancel_scope.cancel()


async def test_workers_that_have_served_are_replaced_at_once_however_young_they_are() -> None:
    async with supplied() as one:
        for number in range(1, 20):
            assert one.spawned[-1] == f"compute-{number}"
            one.start(one.spawned[-1], serves=True)
            one.die(one.spawned[-1])
        assert len(one.spawned) == 20


async def test_all_workers_killed_at_once_leave_one_successor_at_once() -> None:
    async with supplied() as one:
        for _ in range(3):
            one.supply.need(one.front, "compute")
        for worker_id in list(one.spawned):
            one.start(worker_id, serves=True)
        first = list(one.spawned)
        for worker_id in first:
            one.die(worker_id)
        assert (len(first), len(one.spawned)) == (4, 5)


async def test_workers_that_never_serve_are_replaced_ever_more_slowly(autojump_clock: MockClock) -> None:
    async with supplied() as one:
        waits = []
        for _ in range(7):
            one.start(one.spawned[-1], serves=False)
            began, known = trio.current_time(), len(one.spawned)
            one.die(one.spawned[-1])
            while len(one.spawned) == known:  # noqa: ASYNC110 (a clock that jumps)
                await trio.sleep(0.01)
            waits.append(trio.current_time() - began)
        longest = [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0]
        assert all(0.75 * most <= wait < most + 0.011 for wait, most in zip(waits, longest, strict=True)), waits


async def test_a_front_speaks_for_its_own_workers_alone() -> None:
    async with supplied() as one:
        other = PlayedFront(2)
        one.start(one.spawned[-1], serves=False)
        one.supply.note_serving(other, WorkerServes(one.spawned[-1]))
        one.supply.note_serving(one.front, WorkerServes("compute-99"))
        one.die(one.spawned[-1])
        one.start(one.spawned[-1], serves=False)
        one.supply.note_serving(other, WorkerServes(one.spawned[-1]))
        one.die(one.spawned[-1])
        await wait_all_tasks_blocked()
        assert len(one.spawned) == 2, "the second in a row waits"


def descriptors() -> set[int]:
    """Those that this process holds."""
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")}


@contextmanager
def room_for(number: int) -> Iterator[None]:
    """This process can open so many descriptors more."""
    held, before = descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = [one for one in range(before[0]) if one not in held][number]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("room", range(7))
async def test_while_no_descriptor_is_to_be_had_no_worker_starts_and_soon_after_one_does(
    room: int, autojump_clock: MockClock
) -> None:
    async with supplied() as one:
        held = descriptors()
        with room_for(room):  # the one that is missing may be each of the seven that a worker takes
            one.supply.need(one.front, "compute")  # raises nothing: who asks has done nothing wrong
        assert (one.spawned, descriptors()) == (["compute-1"], held)
        await trio.sleep(1)
        assert one.spawned == ["compute-1", "compute-2"]
