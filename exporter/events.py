"""The export of audit events: pages of the ledger, one after the other, each sent until the collector has settled it.

Guarantees that one page is under way, and that the ledger is asked for no more meanwhile. The ledger is the queue:
nothing is dropped for a collector that does not answer.
"""

from typing import Final

import trio

from exporter.collector import OtlpCollector
from exporter.event_parts import EventPart, EventParts
from frontend.clock import ClockError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotarySilent, NotaryUnavailable
from frontend.notary.link import Dialect
from frontend.telemetry.logs import log
from ipc.messages.event_reading import AskedByExporter, NotaryToExporter
from ipc.operations.exporting import MOST_EVENT_BYTES, MOST_EVENTS, EventPosition, FollowingEvents, NextEvents
from ipc.protocols.exporter import NOTARY_TO_EXPORTER
from ipc.texts.canonical import sha256_hex

EXPORTERS: Final = Dialect(AskedByExporter, NotaryToExporter, NOTARY_TO_EXPORTER)
GATHER_SECONDS: Final = 1.0
"""Between two questions, unless many events wait: one request costs much less than as many as there are events."""
_NOTARY_ERRORS: Final = (NotaryUnavailable, NotarySilent, NotaryRefused, ClockError)


class EventExporter:
    """Sends events of one ledger. `client` speaks EXPORTERS."""

    def __init__(self, client: NotaryClient, collector: OtlpCollector, version: str) -> None:
        self._client = client
        self._parts = EventParts(collector, version)
        self._after: EventPosition | None = None
        self._exported = self._dropped = 0

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
        settled, dropped = await self._parts.settle(EventPart(page.after.seq + 1, page.events))
        if settled:
            self._dropped += dropped
            self._exported += settled - dropped
            self._after = EventPosition(page.after.seq + settled, sha256_hex(page.events[settled - 1]))


def _is_large(page: FollowingEvents) -> bool:
    """True for a page that its bounds have ended: more events wait."""
    return len(page.events) >= MOST_EVENTS or sum(map(len, page.events)) >= MOST_EVENT_BYTES // 2
