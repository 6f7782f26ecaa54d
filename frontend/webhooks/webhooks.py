"""The webhooks of one front: a sender for each endpoint. What is to be sent the notary writes with its event.

Guarantees that nothing is held up by it, and that what waits for an endpoint that is not configured any more does not
wait for ever.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import trio

from frontend.clock import Clock, ClockError
from frontend.notary.client import NotaryRefused, NotaryUnavailable
from frontend.notary.operations import Notary
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from frontend.webhooks.deadlines import WebhookDeadlines
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.outcome import Attempts, Outcome
from frontend.webhooks.sender import Means, Sender, Trouble, milliseconds
from ipc.clock import iso
from ipc.evidence import Delivery
from ipc.identifiers import new
from ipc.settings import Settings

TEST: Final = "webhook.test"
"""What an operator tries an endpoint with: no kind that is written with an event."""


class Webhooks:
    """Notifies the endpoints of a configuration that are not disabled."""

    def __init__(
        self, settings: Settings, clock: Clock, notary: Notary, metrics: Metrics,
        deadlines: WebhookDeadlines = WebhookDeadlines(), *, is_successor: bool = False, keeps_count: bool = True,
    ) -> None:  # fmt: skip
        """`keeps_count`: of several fronts one counts what the notary says was dropped. Raises KeyFileError, and
        SecretUnfit for a secret that the configuration holds itself."""
        self._keeps_count = keeps_count
        self._endpoints = open_endpoints(settings.webhooks, is_successor=is_successor)
        self._post = _post_of(settings) if self._endpoints else None
        self._version = settings.version
        self._configured = frozenset(row.name for row in settings.webhooks)
        self._clock = clock
        self._deadlines = deadlines
        self._metrics = metrics
        names = [endpoint.name for endpoint in self._endpoints]
        metrics.knows_endpoints(names)
        self._notary = notary
        self._dropped: dict[str, int] = {}
        self._senders: dict[str, Sender] = {}

    @property
    def is_active(self) -> bool:
        """An endpoint is configured and not disabled."""
        return bool(self._endpoints)

    def has(self, name: str) -> bool:
        """Whether an endpoint of this name is configured and not disabled."""
        return any(endpoint.name == name for endpoint in self._endpoints)

    async def test(self, name: str) -> tuple[Outcome, str]:
        """One attempt to send a `webhook.test` to it now, and the id of what was sent. Raises ClockError."""
        (endpoint,) = [one for one in self._endpoints if one.name == name]
        assert self._post is not None, "there is an endpoint"
        now = self._clock.now()
        event_id = new("evt_")
        body = {"data": {}, "gateway_version": self._version, "id": event_id, "timestamp": iso(now), "type": TEST}
        delivery = Delivery(
            seq=0, event_id=event_id, kind=TEST, endpoint=name, payload=msgspec.json.encode(body).decode(), attempt=1
        )
        return await self._post.attempt(endpoint, delivery, int(now), trio.CapacityLimiter(1)), event_id

    def wake(self, endpoints: Iterable[str]) -> None:
        """Deliveries were written for these."""
        for name in endpoints:
            if name in self._senders:
                self._senders[name].wake()

    async def run(self) -> None:
        """Send what waits, until cancelled; without endpoints only give up what waits for former ones."""
        trouble = Trouble()
        async with trio.open_nursery() as nursery:
            if self._keeps_count:
                nursery.start_soon(self._keep_count, trouble)
            if self._post is not None:
                means = Means(self._notary, self._post, self._clock, self._metrics, trouble, self._deadlines)
                self._senders = {one.name: Sender(one, means) for one in self._endpoints}
                for sender in self._senders.values():
                    nursery.start_soon(sender.run)

    async def _keep_count(self, trouble: Trouble) -> None:
        while True:
            try:
                status = await self._notary.ledger_status()
                self._count_drops(status.dropped)
                for name in sorted(status.waiting.keys() - self._configured):
                    await self._give_up_all(name)
                trouble.ends(self)
                if not self.is_active:
                    return
            except (NotaryUnavailable, NotaryRefused) as error:
                trouble.begins(self, error)
            except ClockError:
                pass
            except Exception as error:
                log.error("waiting webhooks could not be counted", why=type(error).__name__)
            await trio.sleep(self._deadlines.count_seconds)

    def _count_drops(self, dropped: Mapping[str, int]) -> None:
        for name, count in dropped.items():
            if name not in self._dropped:  # what a front before this one has counted already
                self._dropped[name] = min(count, int(self._metrics.webhook_drops.value(name, "outbox_full")))
            more = count - self._dropped[name]
            if more > 0:
                self._metrics.webhook_drops.add(name, "outbox_full", times=more)
            self._dropped[name] = count

    async def _give_up_all(self, name: str) -> None:
        """Endpoint names are shown: they are what a former configuration called them."""
        now, error, count = milliseconds(self._clock.now()), "the endpoint is not configured any more", 0
        while some := await self._notary.give_up_deliveries(name, at=now, error=error):
            count += some
        if count:
            self._metrics.webhooks_orphaned(count)
            log.warning("webhooks were given up: their endpoint is not configured any more", endpoint=name, count=count)


def _post_of(settings: Settings) -> Attempts:
    from frontend.webhooks.delivery import open_post

    return open_post(settings.version, settings.egress.unsafe_resolve)
