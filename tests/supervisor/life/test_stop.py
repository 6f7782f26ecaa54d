"""The time that calls have when the gateway stops: by the clock of the test, to the second."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ipc.messages.control import Drain, Draining, Stop
from ipc.messages.message import Message
from ipc.process.exits import Exit
from ipc.settings import LimitSettings, Settings
from supervisor.children.children import Children
from supervisor.keepers.fronts import FrontLife
from supervisor.life.stop import LEAVING_SECONDS, stop_fronts
from supervisor.programs import Programs
from supervisor.state import SupervisorState


class Posted(FrontLife):
    """A front without a process, which records each message with its time."""

    def __init__(self, state: SupervisorState) -> None:
        self._state = state
        self.told: list[tuple[Message, float]] = []
        self._began = trio.current_time()

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        self.told.append((message, trio.current_time() - self._began))


def opened(drain_seconds: float) -> tuple[SupervisorState, Posted, list[FrontLife]]:
    """A serving gateway with one front that has a call in flight, and the fronts that live."""
    settings = Settings("/nowhere", "http://gateway.test", limits=LimitSettings(drain_seconds=drain_seconds))
    state = SupervisorState(settings, Programs(), Children({}))
    state.lifecycle.move("ready")
    front = Posted(state)
    front.note_draining(Draining(1))
    return state, front, [front]


@pytest.mark.parametrize("seconds", [0.5, 30.0, 120.0])
async def test_calls_have_the_whole_drain_time_and_are_cut_after_it(seconds: float, mock_clock: MockClock) -> None:
    state, front, fronts = opened(seconds)
    codes: list[Exit] = []
    async with trio.open_nursery() as nursery:

        async def stop() -> None:
            codes.append(await stop_fronts(state, lambda: fronts))

        nursery.start_soon(stop)
        for part in (0.0, seconds * 0.9, seconds * 0.099):
            mock_clock.jump(part)
            await wait_all_tasks_blocked()
            assert front.told == [(Drain(), 0.0)], "calls in flight go on"
        mock_clock.jump(seconds * 0.001)
        await wait_all_tasks_blocked()
        ((stop_message, when),) = front.told[1:]
        assert (stop_message, round(when, 6)) == (Stop(seconds=0.0), seconds)
        mock_clock.jump(LEAVING_SECONDS * 0.99)
        await wait_all_tasks_blocked()
        assert not codes, "what was cut is recorded"
        fronts.clear()
        state.condition.notify_all()
    assert codes == [Exit.OK]


async def test_a_front_that_has_no_call_left_is_stopped_at_once(mock_clock: MockClock) -> None:
    state, front, fronts = opened(30.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop_fronts, state, lambda: fronts)
        await wait_all_tasks_blocked()
        mock_clock.jump(12.0)
        front.note_draining(Draining(0))
        await wait_all_tasks_blocked()
        assert front.told[1:] == [(Stop(seconds=18.0), 12.0)], "the rest of its time is told to it"
        fronts.clear()
        state.condition.notify_all()
