"""The listening sockets and all connections on them: accept, count, refuse too many, drain.

Each listening socket has its own ceiling, so that a flood of clients never takes the operators' place; on a Unix socket
the users share it (frontend/limits/shares.py), so that a flood of one never takes another's. At a bound the connection
that has been idle longest makes room, one of the same user's own where it is their bound; when none is idle the
newcomer gets a 503 and is closed.
Never gives up for want of file descriptors or memory: it closes the connection that has been idle longest, waits until
one ends, and tries again.
"""

import errno
import itertools
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import trio

from frontend.http.answers import OVERLOADED, encode_answer, traced
from frontend.http.connection import LINGER_SECONDS, Connection, ListenerContext, Respond
from frontend.http.peercred import PeerCredentials, peer_credentials
from frontend.http.request_turns import RequestTurns
from frontend.http.send_budget import SendBudget
from frontend.http.traffic import NullTraffic, Traffic
from frontend.http.wire import Wire
from frontend.limits.shares import is_among_the_last, may_have_another
from frontend.telemetry.logs import log, trace_now
from ipc.settings import LimitSettings

MIN_IDLE_SECONDS = 1.0
"""A connection idle for less is not closed to make room: its request may be on the way."""
MAX_REFUSALS = 64
"""Newcomers that are being told 503 at the same time; beyond this they are closed without a word."""
USER_SHARE = 3
"""Connections that one user may hold for each that is free: one alone 3/4 of all."""
IDLE_CHECKS = 64
"""Least number of looks, for each patience with an idle connection, at how long they have been idle."""
SCRAPERS = 64
"""Connections at most on the TCP socket of `[metrics]`: the kernel does not tell whose they are."""
RETRY_SECONDS = 0.1
"""Longest pause after accept failed for want of resources."""

WATCHED = frozenset({"admin", "metrics"})
"""Sockets that take no calls: what a gateway that is leaving does is seen through them."""

_BROKEN_LISTENER = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP})


class ListeningSocket(NamedTuple):
    """A bound, listening stream socket (TCP or Unix). `kind` is client, admin, merged or metrics."""

    kind: str
    sock: socket.socket
    stays_open: bool = False
    """It outlives this gateway: who is not accepted any more is served by the next one."""

    @property
    def is_left_early(self) -> bool:
        """Whether it is left before the gateway refuses anything; operators and scrapers see a drain to its end."""
        return self.stays_open and self.kind not in WATCHED


class Server:
    """All listeners of one front. `run` once; `drain` from another task ends it."""

    def __init__(
        self, listeners: Sequence[ListeningSocket], respond: Respond, limits: LimitSettings,
        traffic: Traffic | None = None, *, min_idle_seconds: float = MIN_IDLE_SECONDS,
    ) -> None:  # fmt: skip
        """`min_idle_seconds`: a connection idle for less is not closed to make room."""
        self._listeners = listeners
        self._respond = respond
        self._limits = limits
        self._min_idle_seconds = min_idle_seconds
        self._traffic = traffic or NullTraffic()
        self._unsent = SendBudget(limits.max_unsent_bytes)
        self._turns = RequestTurns()
        self._accepting = trio.CancelScope()
        self._early = trio.CancelScope()
        self._serving = trio.CancelScope()
        self._ended = trio.Event()
        self._room = trio.Event()
        self._connections: dict[int, set[Connection]] = {}
        self._refusals = 0
        self._is_starved = False

    @property
    def connections(self) -> int:
        """Open connections of all listeners."""
        return sum(map(len, self._connections.values()))

    async def run(self, task_status: trio.TaskStatus["Server"] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until drained. Takes the listening sockets over and closes them. Raises OSError for a broken one."""
        trio.lowlevel.add_instrument(self._turns)
        try:
            with self._serving:
                async with trio.open_nursery() as nursery:
                    task_status.started(self)
                    await self._accept_until_drained(nursery)
        finally:
            trio.lowlevel.remove_instrument(self._turns)
            self._ended.set()

    @property
    def may_be_left(self) -> bool:
        """True if every socket that takes calls outlives this gateway: then no call has to be refused."""
        return all(listener.is_left_early or listener.kind in WATCHED for listener in self._listeners)

    async def leave(self, seconds: float) -> None:
        """Accept nothing more on sockets that outlive this gateway, and serve one more request of each connection that
        was accepted and has brought none. Returns once these connections are closed; after `seconds` with those of
        them that wait for a request closed as well."""
        self._early.cancel()
        left = [self._connections[i] for i, one in enumerate(self._listeners) if one.is_left_early]
        for connection in itertools.chain.from_iterable(left):
            connection.finish(spares_new=True)
        with trio.move_on_after(seconds):
            while any(left):
                self._room = trio.Event()
                await self._room.wait()
        for connection in itertools.chain.from_iterable(left):
            connection.finish()

    async def drain(self, seconds: float) -> bool:
        """Stop accepting, let answers under way finish, close idle connections now, cut the rest after `seconds`.

        True when nothing had to be cut. Listening sockets that another process shares stay open there.
        """
        self._accepting.cancel()
        for connections in self._connections.values():
            for connection in connections:
                connection.finish()
        with trio.move_on_after(seconds):
            await self._ended.wait()
            return True
        log.warning("connections cut at the end of drain", connections=self.connections)
        self._serving.cancel()
        await self._ended.wait()
        return False

    async def _accept_until_drained(self, nursery: trio.Nursery) -> None:
        try:
            with self._accepting:
                async with trio.open_nursery() as acceptors:
                    for index, listener in enumerate(self._listeners):
                        self._connections[index] = set()
                        if not listener.is_left_early:
                            acceptors.start_soon(self._accept_all, index, listener, nursery)
                    acceptors.start_soon(self._end_idle)
                    acceptors.start_soon(self._accept_until_left, nursery)
        finally:
            for listener in self._listeners:
                listener.sock.close()

    async def _accept_until_left(self, nursery: trio.Nursery) -> None:
        with self._early:
            async with trio.open_nursery() as acceptors:
                for index, listener in enumerate(self._listeners):
                    if listener.is_left_early:
                        acceptors.start_soon(self._accept_all, index, listener, nursery)

    async def _accept_all(self, index: int, listener: ListeningSocket, nursery: trio.Nursery) -> None:
        endpoint = ListenerContext(listener.kind, self._respond, self._limits, self._unsent, self._turns, self._traffic)
        connections = self._connections[index]
        listener.sock.setblocking(False)
        while True:
            await trio.lowlevel.wait_readable(listener.sock)
            try:
                sock, _ = listener.sock.accept()
            except BlockingIOError:
                continue
            except OSError as error:
                await self._after_failed_accept(error)
                continue
            self._is_starved = False
            try:
                peer = peer_credentials(sock)
            except OSError:
                sock.close()
                continue
            if self._has_room(listener.kind, connections, peer):
                self._admit(sock, endpoint, peer, connections, nursery)
            else:
                self._traffic.turned(listener.kind)
                self._turn_away(sock, nursery)

    async def _end_idle(self) -> None:
        """Close connections idle for too long, at most a 64th of that time late. Drain closes them by itself."""
        patience = self._limits.idle_timeout_seconds
        while True:
            now = longest = trio.current_time()
            for connection in itertools.chain.from_iterable(self._connections.values()):
                if connection.is_idle and now - connection.idle_since >= patience:
                    connection.finish()
                elif connection.is_idle:
                    longest = min(longest, connection.idle_since)
            await trio.sleep(max(longest + patience - now, patience / IDLE_CHECKS))

    def _has_room(self, kind: str, connections: set[Connection], peer: PeerCredentials | None) -> bool:
        """True if one more connection may come, once the one idle for longest has been closed for it."""
        ceiling = self._limits.max_connections
        if peer is None and kind == "metrics":
            ceiling = min(ceiling, SCRAPERS)
        free = ceiling - len(connections)
        if peer is None:
            return free > 0 or self._make_room(connections)
        own = [connection for connection in connections if connection.uid == peer.uid]
        if may_have_another(len(own), USER_SHARE, free, ceiling) or self._make_room(own):
            return True
        return is_among_the_last(len(own), ceiling) and self._make_room(connections)

    def _make_room(self, connections: Iterable[Connection]) -> bool:
        """Close the connection that has been idle longest; False when none has been for long enough."""
        longest_idle = min(
            (one for one in connections if one.is_idle), key=lambda idle: idle.idle_since, default=None
        )  # fmt: skip
        if longest_idle is None or trio.current_time() - longest_idle.idle_since < self._min_idle_seconds:
            return False
        longest_idle.finish()
        return True

    def _admit(
        self,
        sock: socket.socket,
        endpoint: ListenerContext,
        peer: PeerCredentials | None,
        connections: set[Connection],
        nursery: trio.Nursery,
    ) -> None:
        try:
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, endpoint, peer)
        except OSError:
            sock.close()
            return
        if self._accepting.cancel_called:
            # Accepted in the very moment in which drain began.
            connection.finish()
        elif self._early.cancel_called and endpoint.kind not in WATCHED:
            connection.finish(spares_new=True)
        connections.add(connection)
        self._traffic.opened(endpoint.kind)
        nursery.start_soon(self._run, connection, endpoint, connections)

    async def _run(self, connection: Connection, endpoint: ListenerContext, connections: set[Connection]) -> None:
        try:
            await connection.run()
        except Exception:
            log.exception("a connection failed")
        finally:
            connections.discard(connection)
            self._traffic.closed(endpoint.kind)
            self._room.set()

    def _turn_away(self, sock: socket.socket, nursery: trio.Nursery) -> None:
        if self._refusals >= MAX_REFUSALS:
            sock.close()
            return
        self._refusals += 1
        nursery.start_soon(self._say_overloaded, Wire(sock))

    async def _say_overloaded(self, wire: Wire) -> None:
        try:
            with suppress(OSError):
                wire.send_now(encode_answer(traced(OVERLOADED, trace_now()), close=True))
                await wire.linger(LINGER_SECONDS)
        finally:
            wire.close()
            self._refusals -= 1

    async def _after_failed_accept(self, error: OSError) -> None:
        if error.errno in _BROKEN_LISTENER:
            raise error
        if not self._is_starved:
            self._is_starved = True
            log.warning("accept failed", error=errno.errorcode.get(error.errno or 0, str(error)))
        self._make_room(itertools.chain.from_iterable(self._connections.values()))
        self._room = trio.Event()
        with trio.move_on_after(RETRY_SECONDS):
            await self._room.wait()


async def serve(
    listeners: Sequence[ListeningSocket], respond: Respond, limits: LimitSettings, *,
    min_idle_seconds: float = MIN_IDLE_SECONDS, task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:  # fmt: skip
    """Serve `listeners` until the Server handed to `nursery.start` is drained, or cancelled.

    `respond` turns each request into an answer; a GateError it raises becomes the answer of the table, anything else
    500 internal_error and a log line.
    """
    await Server(listeners, respond, limits, min_idle_seconds=min_idle_seconds).run(task_status)
