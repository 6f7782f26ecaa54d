"""The export of audit events: pages of the ledger, one after the other, each sent until the collector has settled it.

Guarantees that one page is under way, that the ledger is asked for no more meanwhile, and that the log says once when
the collector begins to take no events and when it takes them again. The ledger is the queue: nothing is dropped for a
collector that does not answer.
"""

from typing import Final, Protocol

import trio

from exporter.collector import EVENTS, NotExported, OtlpSignal
from exporter.logs import encoded_events
from frontend.clock import ClockError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.link import Dialect
from frontend.telemetry.logs import log
from ipc.channel.protocol_states import NOTARY_TO_EXPORTER
from ipc.messages.event_reading import AskedByExporter, NotaryToExporter
from ipc.operations.exporting import MOST_EVENT_BYTES, MOST_EVENTS, EventPosition, FollowingEvents, NextEvents
from ipc.texts.canonical import sha256_hex

EXPORTERS: Final = Dialect(AskedByExporter, NotaryToExporter, NOTARY_TO_EXPORTER)
GATHER_SECONDS: Final = 1.0
"""Between two questions, unless many events wait: one request costs much less than as many as there are events."""
FIRST_PAUSE_SECONDS: Final = 1.0
"""Before a page is sent again, beyond the repeats of one request; twice as long each time."""
MOST_PAUSE_SECONDS: Final = 60.0
_OF_THE_BATCH: Final = frozenset({400, 413, 500, 501})
"""Answers that the same page would have again: it is dropped. Any other is a matter of the collector, or of its address
and headers, which an operator may mend."""
_AWAY: Final = "the collector takes no events: they wait in the ledger"
_REFUSES: Final = "the collector refuses events: they are dropped"
_NOTARY_ERRORS: Final = (NotaryUnavailable, NotarySilent, NotaryRefused, ClockError)


class EventCollector(Protocol):
    """The collector, as far as events go there."""

    async def send(self, body: bytes, signal: OtlpSignal) -> int:
        """See CollectorClient."""


class EventExporter:
    """Sends events of one ledger. `client` speaks EXPORTERS."""

    def __init__(self, client: NotaryClient, collector: EventCollector, version: str) -> None:
        self._client = client
        self._collector = collector
        self._version = version
        self._after: EventPosition | None = None
        self._exported = self._dropped = 0
        self._told = ""
        """The line that was said last of a collector that does not take events; empty once it does."""

    async def run(self) -> None:
        """Send what the ledger gets, until cancelled."""
        while True:
            page = await self._asked()
            if page is not None:
                self._after = page.after
                if page.events:
                    await self._settle(page)
            if page is None or not _is_large(page):
                await trio.sleep(GATHER_SECONDS)

    async def _asked(self) -> FollowingEvents | None:
        """The next page; None where the notary does not give one, which its own log tells."""
        try:
            return await self._client.ask(NextEvents(self._after, self._exported, self._dropped))
        except _NOTARY_ERRORS as error:
            log.debug("the notary gives no events", cause=str(error))
            return None

    async def _settle(self, page: FollowingEvents) -> None:
        dropped = await self._refused(page)
        self._dropped += dropped
        self._exported += len(page.events) - dropped
        self._after = EventPosition(page.after.seq + len(page.events), sha256_hex(page.events[-1]))

    async def _refused(self, page: FollowingEvents) -> int:
        """Send a page until the collector has taken it, or refused it for good. Return how many events it refused."""
        body, left_out = encoded_events(page.after.seq + 1, page.events, self._version)
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                refused = await self._collector.send(body, EVENTS)
                self._tell("")
                return min(refused + left_out, len(page.events))
            except NotExported as error:
                if error.status in _OF_THE_BATCH:
                    self._tell(_REFUSES, str(error))
                    return len(page.events)
                self._tell(_AWAY, str(error))
            await trio.sleep(pause)
            pause = min(2 * pause, MOST_PAUSE_SECONDS)

    def _tell(self, line: str, cause: str = "") -> None:
        if line == self._told:
            return
        self._told = line
        if line:
            log.warning(line, cause=cause[:200])
        else:
            log.info("the collector takes events again")


def _is_large(page: FollowingEvents) -> bool:
    """True for a page that its bounds have ended: more events wait."""
    return len(page.events) >= MOST_EVENTS or sum(map(len, page.events)) >= MOST_EVENT_BYTES // 2
