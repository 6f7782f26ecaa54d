"""Sends events to the collector until each is settled: taken, or refused for good.

A page goes in one request. Guarantees that an event is dropped only while the collector takes others or answers that
the request is at fault, and that one event which it never takes stops no other. A page that is refused is sent in
halves while the collector takes another event; one event that is left alone with that is dropped after MOST_TRIES, and
the log names it. The log says once when the collector begins to take no events, and when it takes them again.
SECURITY: people choose texts in events: a filter before the collector may refuse one for ever.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import trio

from exporter.collector import EVENTS, NotExported, OtlpCollector
from exporter.logs import encoded_events
from frontend.telemetry.logs import log
from ipc.operations.exporting import MOST_EVENTS

FIRST_PAUSE_SECONDS: Final = 1.0
"""Before events are sent again, beyond the repeats of one request; twice as long each time."""
MOST_PAUSE_SECONDS: Final = 60.0
MOST_TRIES: Final = 5
"""So often is a single event sent that the collector does not take, with another one taken after each."""
_OF_THE_BATCH: Final = frozenset({400, 413, 500, 501})
"""Answers that the same request would have again. Any other is a matter of the collector, or of its address and
headers, which an operator may mend; or of a filter before it."""
_AWAY: Final = "the collector takes no events: they wait in the ledger"
_REFUSES: Final = "the collector refuses events: they are dropped"
_REFUSES_ONE: Final = "the collector refuses an event and takes others: it is dropped"


class EventPart(NamedTuple):
    """Events that follow each other; `first` is the position of the first one."""

    first: int
    events: Sequence[bytes]

    def single(self, place: int) -> "EventPart":
        """The event at this place; -1 is the last one."""
        at = place % len(self.events)
        return EventPart(self.first + at, self.events[at : at + 1])


class OtherEvent(Enum):
    """The outcome of another event, which was sent because a part was not taken."""

    TAKEN = "taken"
    REFUSED = "refused"
    """For good."""
    AWAY = "away"
    """Not taken this time, or there was no other to send."""


class EventParts:
    """Sends the pages of one ledger, one after the other."""

    def __init__(self, collector: OtlpCollector, version: str) -> None:
        self._collector = collector
        self._version = version
        self._most = MOST_EVENTS
        """Events of one request: fewer after a part that was not taken, twice as many after one that was."""
        self._taken: EventPart | None = None
        """The event that the collector took last: sent again to see if it takes any."""
        self._turn = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._told = ""
        """The line that was said last of a collector that does not take events; empty once it does."""

    async def settle(self, page: EventPart) -> tuple[int, int]:
        """Send events until each is settled. Return how many are, and how many of these were dropped. An event that
        is not taken and has no other beside it is left: the next page has more once there are more."""
        at = dropped = 0
        while at < len(page.events):
            part = EventPart(page.first + at, page.events[at : at + self._most])
            lost = await self._lost(part, page)
            if lost is None and len(part.events) == 1:
                break
            if lost is None:
                self._most = len(part.events) // 2
                continue
            self._most = min(2 * self._most, MOST_EVENTS)
            at += len(part.events)
            dropped += lost
        return at, dropped

    async def _lost(self, part: EventPart, page: EventPart) -> int | None:
        """Send a part until it is settled; return how many of its events were dropped. None if the collector takes
        other events but not this part, which has several: some of them may be at fault; and for a single one without
        any other."""
        body, left_out = encoded_events(*part, self._version)
        is_single, tries = len(part.events) == 1, 0
        while True:
            try:
                refused = await self._collector.send(body, EVENTS)
            except NotExported as error:
                problem, is_final = str(error), error.status in _OF_THE_BATCH
            else:
                self._taken, self._pause = part.single(-1), FIRST_PAUSE_SECONDS
                self._tell("")
                return min(refused + left_out, len(part.events))
            other = await self._sent_other(part, page)
            if other is OtherEvent.TAKEN and not is_single:
                return None
            tries = tries + 1 if other is OtherEvent.TAKEN else 0
            if (is_final and tries) or tries == MOST_TRIES:
                log.warning(_REFUSES_ONE, position=part.first, cause=problem[:200])
                return 1
            if is_final and (other is OtherEvent.REFUSED or is_single):
                self._tell(_REFUSES, problem, position=part.first, count=len(part.events))
                return len(part.events)
            if not tries:
                self._tell(_AWAY, problem)
            await trio.sleep(self._pause)
            self._pause = min(2 * self._pause, MOST_PAUSE_SECONDS)
            if is_single and not self._others(part, page):
                return None

    async def _sent_other(self, part: EventPart, page: EventPart) -> OtherEvent:
        found = OtherEvent.AWAY
        for other in self._others(part, page):
            body, _ = encoded_events(*other, self._version)
            try:
                await self._collector.send(body, EVENTS)
            except NotExported as error:
                if error.status not in _OF_THE_BATCH:
                    return OtherEvent.AWAY
                found = OtherEvent.REFUSED
            else:
                self._taken = other
                return OtherEvent.TAKEN
        return found

    def _others(self, part: EventPart, page: EventPart) -> list[EventPart]:
        """The event that was taken last; before the first one some of the page, beginning with another one each time:
        any of them may be at fault."""
        if self._taken is not None:
            return [self._taken]
        self._turn += 1
        count = len(page.events)
        some = [page.single(place) for place in sorted({0, count // 2, count - 1})]
        begin = self._turn % len(some)
        return [one for one in some[begin:] + some[:begin] if one != part]

    def _tell(self, line: str, cause: str = "", **fields: int) -> None:
        if line == self._told:
            return
        self._told = line
        if line:
            log.warning(line, cause=cause[:200], **fields)
        else:
            log.info("the collector takes events again")
