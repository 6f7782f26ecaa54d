"""The upstream of a dev gateway (`contrib/bank/`): a process that the example actions can speak to, held alive.

Owns the loopback socket that it serves, which outlives the process. Readiness does not depend on it: a call that comes
before it serves waits in the socket's backlog.
"""

import socket

import trio

from supervisor.children.backoff import Backoff, reason_of
from supervisor.children.children import not_started
from supervisor.logs import log
from supervisor.state import SupervisorState

NAME = "upstream.gateway.test"
"""The host name that the example actions use."""
_BACKLOG = 64


def listen_upstream() -> socket.socket:
    """A listening socket on a free port of 127.0.0.1. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind(("127.0.0.1", 0))
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def address_of(sock: socket.socket) -> str:
    """`host:port` of the socket."""
    host, port = sock.getsockname()
    return f"{host}:{port}"


async def keep_upstream(state: SupervisorState, sock: socket.socket) -> None:
    """Start it again whenever it ends, until cancelled; log each end, and wait longer before each new start."""
    backoff = Backoff()
    while state.lifecycle.may_replace:
        try:
            child = state.children.spawn("upstream", state.programs.upstream, sock.dup(), "listen-fd")
        except OSError as error:
            child = not_started("upstream", error)
        try:
            status = await child.wait()
        finally:
            child.kill()
        delay = backoff.delay(trio.current_time(), had_served=False, lived=child.age)
        log.warning("upstream ended", reason=reason_of(status), pid=child.pid, restart_in=delay)
        await trio.sleep(delay)
