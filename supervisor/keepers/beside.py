"""Programs beside a dev gateway, held alive: the upstream of the example actions (`contrib/bank/`), and the console.

The socket that each serves outlives its process. Readiness does not depend on them: a request that comes before one
serves waits in the socket's backlog.
"""

import trio

from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.children import not_started
from supervisor.logs import log
from supervisor.programs import BesideProgram
from supervisor.state import SupervisorState


async def keep_beside(state: SupervisorState, beside: BesideProgram) -> None:
    """Start it again whenever it ends, until cancelled; log each end, and wait longer before each new start."""
    backoff = Backoff()
    while state.lifecycle.may_replace:
        try:
            child = state.children.spawn(beside.name, beside.program, beside.sock.dup(), "listen-fd")
        except OSError as error:
            child = not_started(beside.name, error)
        try:
            status = await child.wait()
        finally:
            child.kill()
        delay = backoff.delay(trio.current_time(), had_served=False, lived=child.age)
        log.warning(f"{beside.name} ended", reason=reason_of(status), pid=child.pid, restart_in=delay)
        await trio.sleep(delay)
