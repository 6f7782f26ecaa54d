"""All audit events, page by page, newest first. No I/O.

Pages are asked for by `before`, an exclusive bound in milliseconds. Several events may share a millisecond, so each
page begins one millisecond above the last event seen, and what was seen of that millisecond is left out: none is lost,
none comes twice.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway_client.errors import ProtocolViolation
from gateway_client.operating.core import OperatorCore
from gateway_client.results import AuditEvent, EventFilter
from gateway_client.wire.flows import Flow

MAX_PAGE = 1000


class Paging:
    """Where one reading of the events has come to."""

    def __init__(self, core: OperatorCore, where: EventFilter, page_size: int) -> None:
        """Raises ValueError for a page size that the gateway does not have."""
        if not 1 <= page_size <= MAX_PAGE:
            raise ValueError(f"a page holds 1 to {MAX_PAGE} events")
        self._core = core
        self._where = where
        self._size = page_size
        self._seen: set[str] = set()
        self._at: str | None = None
        self.is_done = False

    def next_page(self) -> Flow[tuple[AuditEvent, ...]]:
        """The next events; empty only at the end."""
        while not self.is_done:
            page = yield from self._core.events(self._where, self._size)
            fresh = tuple(event for event in page.events if event.event_id not in self._seen)
            # A page is shorter than asked for where its events are large, too: the last is one without a new event.
            self.is_done = not page.events or (len(page.events) < self._size and not fresh)
            self._advance(page.events)
            if fresh:
                return fresh
        return ()

    def _advance(self, events: tuple[AuditEvent, ...]) -> None:
        if self.is_done:
            return
        last = events[-1].timestamp
        if last == self._at:  # the whole page was one millisecond: only a larger page gets beyond it
            if self._size == MAX_PAGE:
                raise ProtocolViolation(f"more than {MAX_PAGE} events in one millisecond")
            self._size = MAX_PAGE
        else:
            self._at, self._seen = last, set()
        self._seen.update(event.event_id for event in events if event.timestamp == last)
        self._where = replace(self._where, before=_next_millisecond(last))


def _next_millisecond(timestamp: str) -> str:
    try:
        moment = datetime.fromisoformat(timestamp).astimezone(UTC) + timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ProtocolViolation("an event's timestamp is no time") from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
