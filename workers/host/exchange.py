"""One request and its answer, over a connection that was kept or over a new one.

Guarantees that a request is sent at most twice, and twice only where its method allows it, and that a connection is
kept only after an answer that was accepted and ended where it said. Knows no plan.
"""

from collections.abc import Callable

import msgspec

from workers.host.connection import UpstreamConnection, is_quiet
from workers.host.kept import KeptConnection, KeptConnections
from workers.host.layered import Stream
from workers.host.meter import UPSTREAM, HostError, Meter
from workers.host.wire import IsEnough, Response, read_response

_REPEATABLE = frozenset({"GET", "PUT", "DELETE", "OPTIONS"})
"""Two requests do no more than one (RFC 9110 §9.2.2). HEAD does not keep: some servers send a body all the same."""
_SENT_ONCE = frozenset({"POST", "PATCH"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FRESH_SECONDS = 1.0
"""A POST or PATCH goes over a connection that has waited no longer: if the upstream ends it at that moment, it is not
known whether the request was carried out."""
_SENT_BEFORE = "it was asked before over a connection that ended, and may have done it"
_TIMED_OUT = 408
"""An upstream says so, too, before it ends a connection that waits (RFC 9110 §15.5.9)."""


def may_share(method: str, body: bytes) -> bool:
    """True if a request may use a connection that others use.

    SECURITY: a body where none is expected is read by some servers as the next request.
    """
    return method in _REPEATABLE | _SENT_ONCE and (not body or method in _WITH_BODY)


class Exchange(msgspec.Struct, frozen=True):
    """A request, and the connections that it may use."""

    open_stream: Callable[[], Stream]
    """Raises HostError."""
    kept: KeptConnections
    key: bytes | None
    """The key of connections that this request may use (KeptConnections.key). None: it has one of its own."""
    method: str
    deadline: float
    max_body: int
    is_enough: IsEnough | None = None
    """Ends the reading of an event stream."""
    meter: Meter | None = None
    """Hears that the request leaves, and that its answer comes. None: a request that has no effect."""

    def run(self, data: bytes, accept: Callable[[Response], None]) -> Response:
        """Send the bytes of the request; `accept` raises HostError for an answer that is refused. Raises HostError."""
        kept = None if self.key is None else self.kept.take(self.key, self._patience())
        if kept is None:
            return self._over_new(data, accept)
        response = self._over(kept, data, accept)
        if response is not None:
            return response
        try:
            return self._over_new(data, accept)
        except HostError as error:
            why = error.failure
            message = f"{why.message}; {_SENT_BEFORE}"
            raise HostError(why.kind, message, details=why.details, retryable=why.retryable, name=error.name) from None

    def _over_new(self, data: bytes, accept: Callable[[Response], None]) -> Response:
        stream = self.open_stream()
        if not is_quiet(stream):
            stream.close()
            problem = f"{UPSTREAM} answered or hung up before it was asked"
            raise HostError("unavailable", problem, retryable=True, name="upstream_reset")
        response = self._over(self.kept.opened(self.key or b"", stream), data, accept)
        assert response is not None, "only a connection that was kept is given up"
        return response

    def _note_answer(self) -> None:
        if self.meter is not None:
            self.meter.note_answer()

    def _patience(self) -> float:
        return float("inf") if self.method in _REPEATABLE else FRESH_SECONDS

    def _over(self, way: KeptConnection, data: bytes, accept: Callable[[Response], None]) -> Response | None:
        """The answer; None if the upstream had given up a connection that was kept, and may be asked again."""
        connection = UpstreamConnection(way.stream, self.deadline)
        may_repeat = way.is_used and self.method in _REPEATABLE
        try:
            if self.meter is not None:
                self.meter.note_sending()
            connection.send(data)
            if way.is_used:
                connection.confirm_at_once()
            response = read_response(connection.receive, self.method, self.max_body, self.is_enough, self._note_answer)
            accept(response)
        except BaseException as error:
            way.stream.close()
            is_broken = isinstance(error, HostError) and error.failure.kind == "unavailable"
            if isinstance(error, HostError) and is_broken:
                error.name = "upstream_reset"
            if may_repeat and is_broken and not connection.has_heard:
                return None
            raise
        if may_repeat and response.status == _TIMED_OUT:
            way.stream.close()
            return None
        if self.key is not None and response.open_seconds > 0 and not connection.is_early:
            self.kept.keep(way, response.open_seconds)
        else:
            way.stream.close()
        return response
