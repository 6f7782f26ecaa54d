"""The open connections: how many there may be, in all and from one address, and the end of those that read slowly.

An IPv6 client counts by its network of 64 bits, which one host commonly has whole.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from edge.held import AnswerBytes, HeldBytes
from frontend.telemetry.logs import log
from ipc.edge_settings import EdgeLimitSettings

CONNECTION: Final = "edge_connection"
"""Where the state of a scope has the connection."""
LOOK_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 60.0
"""Without a request: also for a head that does not end."""


class EdgeConnection:
    """One client's connection, and the time that its answers may still wait for it."""

    def __init__(self, stream: trio.SocketStream, address: str) -> None:
        self._stream = stream
        self.address = address
        self.certificate: bytes | None = None
        """The client's, as DER, once TLS has verified it."""
        self.late: dict[object, float] = {}
        """Sends under way, and when each is late."""

        self.idle_since: float | None = trio.current_time()
        """Its beginning or the end of its last request, in trio's time; None while one is under way."""
        self._under_way = 0
        self.holds_back = False
        """True while bytes to send are added to `held_back`, which the next send takes along."""
        self.held_back = b""
        self.is_ending = False
        """No further request is served: where one request ends may be read in two ways."""
        self.scope = trio.CancelScope()
        """Around all that serves it."""

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request is under way. The library that reads HTTP can't say so: it tells no end of some streams."""
        self._under_way += 1
        self.idle_since = None
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self.idle_since = trio.current_time()

    def cut_slow(self) -> None:
        """Cut it, as its answers wait in memory that others need."""
        log.warning("connection cut: its answers fill the memory", address=self.address)
        self.abort()

    def abort(self) -> None:
        """Cut it, even in the middle of a send that nothing else can cancel."""
        self._stream.socket.close()
        self.scope.cancel()


class EdgeConnections:
    """All of them."""

    def __init__(self, limits: EdgeLimitSettings) -> None:
        self._limits = limits
        self._open: set[EdgeConnection] = set()
        self._of_address: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._all_asked = 0
        self._refused = 0
        self.bodies = HeldBytes()
        """Bytes of requests that are being read, or wait for the gateway."""
        self.answers = AnswerBytes()
        """Bytes of answers that wait for their clients."""

    def admit(self, stream: trio.SocketStream) -> EdgeConnection | None:
        """Count a connection that was accepted. None where a bound is reached, and for a client that has gone."""
        try:
            address = group_of(stream.socket.getpeername()[0])
        except OSError:
            return None
        if (
            len(self._open) >= self._limits.max_connections
            or self._of_address[address] >= self._limits.max_connections_per_address
        ):
            self._refused += 1
            return None
        connection = EdgeConnection(stream, address)
        self._open.add(connection)
        self._of_address[address] += 1
        return connection

    def release(self, connection: EdgeConnection) -> None:
        """It has ended."""
        self._open.discard(connection)
        _count_down(self._of_address, connection.address)

    def begin_request(self, address: str) -> bool:
        """Count a request; False where its address has as many under way as it may have connections."""
        if (
            self._asked[address] >= self._limits.max_connections_per_address
            or self._all_asked >= self._limits.max_connections
        ):
            return False
        self._asked[address] += 1
        self._all_asked += 1
        return True

    def end_request(self, address: str) -> None:
        """It has been answered."""
        self._all_asked -= 1
        _count_down(self._asked, address)

    async def watch(self) -> None:
        """Cut connections whose client reads too slowly, and log how many were refused, until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            now = trio.current_time()
            for connection in [one for one in self._open if any(late < now for late in one.late.values())]:
                connection.late.clear()
                log.warning("connection cut: its client reads too slowly", address=connection.address)
                connection.abort()
            self.abort_idle(IDLE_SECONDS)
            if self._refused:
                log.warning("connections refused: too many", count=self._refused)
                self._refused = 0

    def abort_idle(self, seconds: float = 0.0) -> None:
        """Cut those that have had no request for so long."""
        before = trio.current_time() - seconds
        for connection in self._open:
            if connection.idle_since is not None and connection.idle_since <= before:
                connection.abort()

    def abort_all(self) -> None:
        """Cut all that are left."""
        for connection in self._open:
            connection.abort()


def group_of(host: str) -> str:
    """The address under which a client is counted."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def _count_down(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]
