"""The webhooks of one front: rows for events, and a sender for each endpoint.

Owns who is notified of what. Guarantees that nothing is held up by it, and that what waits for an endpoint that is not
configured any more does not wait for ever.
"""

from collections.abc import Iterable
from typing import Final

import trio

from frontend.clock import Clock, ClockError
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import LedgerUnavailable, OutboxRow
from frontend.evidence.outbox import Outbox
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from frontend.webhooks.backlog import Backlog
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.kinds import kinds_of
from frontend.webhooks.message import body_of
from frontend.webhooks.outcome import Attempts
from frontend.webhooks.sender import Means, Sender, Trouble, milliseconds
from ipc.settings import Settings

COUNT_SECONDS: Final = 10.0
"""Between two looks at how many wait."""


class Webhooks:
    """Notifies the endpoints of a configuration that are not disabled."""

    def __init__(self, settings: Settings, clock: Clock, metrics: Metrics, *, is_successor: bool = False) -> None:
        """Raises KeyFileError, and SecretUnfit for a secret that the configuration holds itself."""
        self._endpoints = open_endpoints(settings.webhooks, is_successor=is_successor)
        self._post = _post_of(settings) if self._endpoints else None
        self._configured = frozenset(row.name for row in settings.webhooks)
        self._version = settings.version
        self._clock = clock
        self._metrics = metrics
        names = [endpoint.name for endpoint in self._endpoints]
        metrics.knows_endpoints(names)
        self._backlog = Backlog(names, metrics)
        self._senders: dict[str, Sender] = {}

    @property
    def is_active(self) -> bool:
        """An endpoint is configured and not disabled."""
        return bool(self._endpoints)

    def rows_for(self, event: AuditEvent) -> tuple[OutboxRow, ...]:
        """What is to be written with this event. Each row counts as waiting from now on; say what became of them."""
        kinds = kinds_of(event)
        rows, bodies = list[OutboxRow](), dict[str, str]()
        for endpoint in self._endpoints if kinds else ():
            kind = next((kind for kind in kinds if kind in endpoint.events), None)
            if kind is not None and self._backlog.has_room(endpoint.name):
                if kind not in bodies:
                    bodies[kind] = body_of(event, kind, self._version)
                rows.append(OutboxRow(event.event_id, kind, endpoint.name, bodies[kind]))
        return tuple(rows)

    def written(self, rows: Iterable[OutboxRow]) -> None:
        """These rows are in the outbox."""
        for row in rows:
            if row.endpoint in self._senders:
                self._senders[row.endpoint].wake()

    def not_written(self, rows: Iterable[OutboxRow]) -> None:
        """They are not, as far as anybody knows."""
        for row in rows:
            self._backlog.less(row.endpoint)

    async def run(self, outbox: Outbox) -> None:
        """Send what waits, until cancelled; without endpoints only give up what waits for former ones."""
        trouble = Trouble()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_count, outbox, trouble)
            if self._post is not None:
                means = Means(outbox, self._post, self._clock, self._metrics, self._backlog, trouble)
                self._senders = {one.name: Sender(one, means) for one in self._endpoints}
                for sender in self._senders.values():
                    nursery.start_soon(sender.run)

    async def _keep_count(self, outbox: Outbox, trouble: Trouble) -> None:
        while True:
            try:
                waiting = await outbox.waiting()
                self._backlog.found(waiting)
                for name in sorted(waiting.keys() - self._configured):
                    await self._give_up_all(outbox, name)
                trouble.ends(self)
                if not self.is_active:
                    return
            except LedgerUnavailable as error:
                trouble.begins(self, error)
            except ClockError:
                pass
            except Exception as error:
                log.error("waiting webhooks could not be counted", why=type(error).__name__)
            await trio.sleep(COUNT_SECONDS)

    async def _give_up_all(self, outbox: Outbox, name: str) -> None:
        """Endpoint names are shown: they are what a former configuration called them."""
        now = milliseconds(self._clock.now())
        count = await outbox.give_up_all(name, at=now, error="the endpoint is not configured any more")
        if count:
            self._metrics.webhooks_orphaned(count)
            log.warning("webhooks were given up: their endpoint is not configured any more", endpoint=name, count=count)


def _post_of(settings: Settings) -> Attempts:
    from frontend.webhooks.delivery import open_post

    return open_post(settings.version, settings.egress.unsafe_resolve)
