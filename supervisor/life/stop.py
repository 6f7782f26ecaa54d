"""How the gateway stops: drain, stop, kill, each with a deadline, and the exit code that tells which it was.

Calls have `limits.drain_seconds` from the signal on, whole; closing what is open comes on top. Exit.KILLED says that
calls were cut by it, Exit.FAILED that a front ended by itself before it was done: calls may have been cut. Helpers
without state of their own (policy, template, workers) are simply ended and say nothing.
"""

from collections.abc import Callable

import trio

from ipc.messages.control import Drain, Stop
from ipc.process.exits import Exit
from supervisor.keepers.fronts import FrontLife
from supervisor.logs import log
from supervisor.state import SupervisorState

HALT_SECONDS = 2.0
"""For fronts to leave when the gateway halts; nothing is drained then."""
LEAVING_SECONDS = 5.0
"""The time for fronts to record cut calls and to leave, after the last call."""


async def stop_fronts(state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> Exit:
    """Drain and stop every front; return the exit code. `fronts()` are those that live at the moment."""
    began = trio.current_time()
    is_halted = state.halted is not None
    last_call = began if is_halted else began + state.settings.limits.drain_seconds
    state.last_call_at = last_call
    hard_end = last_call + (HALT_SECONDS if is_halted else LEAVING_SECONDS)
    with state.patience:
        if state.halted is None:
            await _drain(state, fronts, last_call)
        state.lifecycle.move("stop")
        state.condition.notify_all()
        for front in fronts():
            front.post(Stop(seconds=max(0.0, last_call - trio.current_time())))
        with trio.move_on_at(hard_end):
            await state.condition.until(lambda: not fronts())
    return await _kill_rest(state, fronts)


async def _drain(state: SupervisorState, fronts: Callable[[], list[FrontLife]], deadline: float) -> None:
    if state.lifecycle.is_starting:
        return
    begin_drain(state, fronts())
    with trio.move_on_at(deadline):
        await state.condition.until(lambda: all(front.is_drained for front in fronts()))


def begin_drain(state: SupervisorState, fronts: list[FrontLife]) -> None:
    """Refuse new work from now on; a gateway that stops already does."""
    if not state.lifecycle.may_replace:
        return
    if state.lifecycle.move("drain"):
        log.info("draining", in_flight=sum(front.in_flight for front in fronts))
        state.condition.notify_all()
    for front in fronts:
        front.post(Drain(is_leaving=state.is_leaving))


async def _kill_rest(state: SupervisorState, fronts: Callable[[], list[FrontLife]]) -> Exit:
    state.lifecycle.move("stop")
    state.condition.notify_all()
    left = fronts()
    for front in left:
        log.error(f"{front.name} is killed: it did not leave in time", in_flight=front.in_flight)
        if front.child is not None:
            front.child.kill()
    await state.condition.until(lambda: not fronts())
    if state.halted is not None:
        return state.halted
    if left or state.has_cut_calls:
        return Exit.KILLED
    if state.is_replaced:  # a front may be lost by that alone
        return Exit.REPLACED
    return Exit.FAILED if state.has_lost_front else Exit.OK
