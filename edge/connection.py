"""One connection of a client, and all that is known of it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

import trio

from frontend.telemetry.logs import log

CONNECTION: Final = "edge_connection"
"""Where the state of a scope has the connection."""


class EdgeConnection:
    """One client's connection, and the time that its answers may still wait for it."""

    def __init__(self, stream: trio.SocketStream, address: str) -> None:
        self._stream = stream
        self.address = address
        self.certificate: bytes | None = None
        """The client's, as DER, once TLS has verified it."""
        self._certificate_ends = inf
        self.late: dict[object, float] = {}
        """Sends under way, and when each is late."""
        self.opened_at = trio.current_time()
        self.idle_since: float | None = self.opened_at
        """Its beginning or the end of its last request, in trio's time; None while one is under way."""
        self.quiet_since = self.opened_at
        """Its beginning, or the end of the last request that had come whole."""
        self.is_fresh = True
        """No request has come whole."""
        self._under_way = 0
        self._whole = 0
        self.holds_back = False
        """True while bytes to send are added to `held_back`, which the next send takes along."""
        self.held_back = b""
        self.is_ending = False
        """No further request is served: where one request ends may be read in two ways."""
        self.is_draining = False
        """The edge ends: in HTTP/1.1 the next answer is the last one, and says so."""
        self.scope = trio.CancelScope()
        """Around all that serves it."""

    def show(self, certificate: bytes | None, ends: float) -> None:
        """TLS has verified the client's certificate, which ends at this Unix time."""
        self.certificate = certificate
        self._certificate_ends = ends

    def distrust(self) -> None:
        """Serve no further request by the certificate that was shown."""
        if self.certificate is not None:
            self._certificate_ends = 0.0

    @property
    def is_distrusted(self) -> bool:
        """True once its certificate counts no more."""
        return self._certificate_ends <= time.time()

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

    @contextmanager
    def whole_request(self) -> Iterator[None]:
        """A request that has come whole is answered: meanwhile the connection makes no room for others."""
        self._whole += 1
        self.is_fresh = False
        try:
            yield
        finally:
            self._whole -= 1
            self.quiet_since = trio.current_time()

    @property
    def is_answering(self) -> bool:
        """True while a request that has come whole is answered."""
        return self._whole > 0

    def cut_slow(self) -> None:
        """Cut it, as its answers wait in memory that others need."""
        log.warning("connection cut: its answers fill the memory", address=self.address)
        self.abort()

    def abort(self) -> None:
        """Cut it, even in the middle of a send that nothing else can cancel."""
        self._stream.socket.close()
        self.scope.cancel()
