"""How the gateway stops: drain, stop, kill, each with a deadline, and the exit code that tells which it was.

`limits.drain_seconds` is the time from the signal to the hard end. Exit.KILLED says that calls were cut by it,
Exit.FAILED that a front ended by itself before it was done: calls may have been cut. Helpers without state of their own
(policy, template, workers) are simply ended and say nothing.
"""

from collections.abc import Callable

import trio

from ipc import messages as m
from ipc.exits import Exit
from supervisor.fronts import Front
from supervisor.house import House
from supervisor.logs import log

HALT_SECONDS = 2.0
"""For fronts to leave when the gateway halts; nothing is drained then."""
LEAVING_SHARE = 0.2
LEAVING_MAX_SECONDS = 5.0
"""What of the drain time is kept for closing stores and ledger: a share, at most so many seconds."""


async def stop_fronts(house: House, fronts: Callable[[], list[Front]]) -> Exit:
    """Drain and stop every front; return the exit code. `fronts()` are those that live at the moment."""
    began = trio.current_time()
    hard_end = began + (HALT_SECONDS if house.halted is not None else house.settings.limits.drain_seconds)
    last_call = hard_end - min((hard_end - began) * LEAVING_SHARE, LEAVING_MAX_SECONDS)
    with house.patience:
        if house.halted is None:
            await _drain(house, fronts, last_call)
        house.lifecycle.move("stop")
        house.bell.ring()
        for front in fronts():
            front.post(m.Stop(seconds=max(0.0, last_call - trio.current_time())))
        with trio.move_on_at(hard_end):
            await house.bell.until(lambda: not fronts())
    return await _kill_rest(house, fronts)


async def _drain(house: House, fronts: Callable[[], list[Front]], deadline: float) -> None:
    if house.lifecycle.is_starting:
        return
    begin_drain(house, fronts())
    with trio.move_on_at(deadline):
        await house.bell.until(lambda: all(front.is_drained for front in fronts()))


def begin_drain(house: House, fronts: list[Front]) -> None:
    """Refuse new work from now on; a gateway that stops already does."""
    if not house.lifecycle.may_replace:
        return
    if house.lifecycle.move("drain"):
        log.info("draining", in_flight=sum(front.in_flight for front in fronts))
        house.bell.ring()
    for front in fronts:
        front.post(m.Drain())


async def _kill_rest(house: House, fronts: Callable[[], list[Front]]) -> Exit:
    house.lifecycle.move("stop")
    house.bell.ring()
    left = fronts()
    for front in left:
        log.error(f"{front.name} is killed: it did not leave in time", in_flight=front.in_flight)
        if front.child is not None:
            front.child.kill()
    await house.bell.until(lambda: not fronts())
    if house.halted is not None:
        return house.halted
    if left or house.has_cut_calls:
        return Exit.KILLED
    return Exit.FAILED if house.has_lost_front else Exit.OK
