"""The open connections: how many there may be, in all and from one address, and the end of those that are slow.

At a bound of all, a connection without a whole request makes room: the quietest of the address that has most. So
clients of few addresses keep no others out. An IPv6 client counts by its network of 64 bits, which one host commonly
has whole.
"""

import ipaddress
from collections import Counter
from math import inf
from typing import Final

import trio

from edge.connection import EdgeConnection
from edge.held import AnswerBytes, HeldBytes
from edge.refusals import EdgeRefusals
from frontend.telemetry.logs import log
from ipc.configuration.edge_settings import EdgeLimitSettings

LOOK_SECONDS: Final = 0.5
IDLE_SECONDS: Final = 60.0
"""Without a request: also for a head that does not end."""
MIN_QUIET_SECONDS: Final = 1.0
"""A connection that is younger, or was answered later, makes no room for its own address: its request may be on the
way."""
LAST_REQUESTS_SECONDS: Final = 15.0
"""While it drains: requests that begin later on an open connection are refused, so that their answers are not cut."""
FIRST_SECONDS: Final = 20.0
"""Until the first request has begun, the handshake included."""


class EdgeConnections:
    """All of them."""

    def __init__(self, limits: EdgeLimitSettings) -> None:
        self._limits = limits
        self._open: set[EdgeConnection] = set()
        self._of_address: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._all_asked = 0
        self._drains_since: float | None = None
        self.refusals = EdgeRefusals()
        self.refused_certificates = EdgeRefusals("certificates of clients are refused")
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
        if self._of_address[address] >= self._limits.max_connections_per_address:
            self.refusals.count("connections_of_address", address)
            return None
        if not self._has_room(address):
            self.refusals.count("connections", address)
            return None
        connection = EdgeConnection(stream, address)
        connection.is_draining = self._drains_since is not None
        self._open.add(connection)
        self._of_address[address] += 1
        return connection

    def release(self, connection: EdgeConnection) -> None:
        """It has ended, or been cut."""
        if connection in self._open:
            self._open.remove(connection)
            _count_down(self._of_address, connection.address)

    def _has_room(self, address: str) -> bool:
        """True if one more fits, also once another has been cut for it."""
        fresh = [one for one in self._open if one.is_fresh]
        if len(fresh) >= (self._limits.max_connections + 1) // 2:
            return self._cut_one_of(fresh, address)
        if len(self._open) >= self._limits.max_connections:
            return self._cut_one_of([one for one in self._open if not one.is_answering], address)
        return True

    def _cut_one_of(self, connections: list[EdgeConnection], address: str) -> bool:
        """Cut the quietest one of the address that has most. False where the newcomer's address has as many, and all of
        them are young."""
        most = max((self._of_address[one.address] for one in connections), default=0)
        latest = inf if most > self._of_address[address] else trio.current_time() - MIN_QUIET_SECONDS
        quiet = [one for one in connections if self._of_address[one.address] == most and one.quiet_since <= latest]
        if not quiet:
            return False
        slowest = min(quiet, key=lambda one: (not one.is_fresh, one.quiet_since))
        self.refusals.count("made_room", slowest.address)
        self.release(slowest)
        slowest.abort()
        return True

    def begin_request(self, address: str) -> bool:
        """Count a request; False where its address has as many under way as it may have connections. Where all
        have, an address may still have one."""
        if self._asked[address] >= self._limits.max_connections_per_address:
            self.refusals.count("requests_of_address", address)
            return False
        if self._all_asked >= self._limits.max_connections and self._asked[address]:
            self.refusals.count("requests", address)
            return False
        self._asked[address] += 1
        self._all_asked += 1
        return True

    def end_request(self, address: str) -> None:
        """It has been answered."""
        self._all_asked -= 1
        _count_down(self._asked, address)

    async def watch(self) -> None:
        """Cut connections whose client is too slow, until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            now = trio.current_time()
            for connection in [one for one in self._open if any(late < now for late in one.late.values())]:
                connection.late.clear()
                log.warning("connection cut: its client reads too slowly", address=connection.address)
                connection.abort()
            self.abort_idle(IDLE_SECONDS if self._drains_since is None else LOOK_SECONDS)
            self._abort_unserved(now)

    def _abort_unserved(self, now: float) -> None:
        """Cut those that have not begun to ask in time, and those of a certificate that counts no more, once they have
        had their answers."""
        for connection, since in [(one, one.idle_since) for one in self._open]:
            if since is None:
                continue
            is_late = connection.is_fresh and connection.opened_at + FIRST_SECONDS <= now
            is_over = connection.is_distrusted and since + LOOK_SECONDS <= now
            if is_late or is_over:
                connection.abort()

    def distrust_certificates(self) -> None:
        """Serve no further request by a certificate that was verified until now."""
        for connection in self._open:
            connection.distrust()

    def drain(self) -> None:
        """Let each connection end once its answers are out."""
        self._drains_since = trio.current_time()
        for connection in self._open:
            connection.is_draining = True
        self.abort_idle(LOOK_SECONDS)

    @property
    def refuses(self) -> bool:
        """True once requests of connections that are still open are refused, since the edge ends soon."""
        return self._drains_since is not None and self._drains_since + LAST_REQUESTS_SECONDS <= trio.current_time()

    def abort_idle(self, seconds: float) -> None:
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
