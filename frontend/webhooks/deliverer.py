"""The deliverer of webhooks: a sender for each endpoint, in a process of its own beside the fronts.

Guarantees that no call waits for a receiver, dead, slow or garbage, that none of it costs a front anything, and that a
stop finishes what is under way as far as its time goes; what it cuts is sent again after its claim. Knows no lease, no
operator and no key but the secrets of its endpoints.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
import trio

from frontend.clock import ClockError, TimeSource
from frontend.deadlines import WebhookDeadlines
from frontend.webhooks.endpoints import WebhookTarget
from frontend.webhooks.outbox import Outbox
from frontend.webhooks.outcome import FAILED, NOT_CONFIGURED, AttemptOutcome, Attempts
from frontend.webhooks.sender import Sender, SenderContext, Trouble
from ipc.evidence.records import Delivery
from ipc.messages.control import TryWebhook, WebhookTried
from ipc.process.clock import iso

TEST: Final = "webhook.test"
"""The kind of an operator's test delivery; no event is written with it."""
TESTS_AT_ONCE: Final = 4


class Deliverer:
    """The endpoints of a configuration that are not disabled."""

    def __init__(
        self, endpoints: Iterable[WebhookTarget], version: str, post: Attempts, clock: TimeSource, outbox: Outbox,
        on_gone: Callable[[str], None], deadlines: WebhookDeadlines = WebhookDeadlines(),
    ) -> None:  # fmt: skip
        """`on_gone` hears the name of an endpoint that has answered 410."""
        self._endpoints = {one.name: one for one in endpoints}
        self._version = version
        self._post = post
        self._clock = clock
        means = SenderContext(outbox, post, clock, Trouble(), deadlines, on_gone)
        self._senders = {name: Sender(endpoint, means) for name, endpoint in self._endpoints.items()}
        self._tests = 0

    def wake(self, endpoints: Iterable[str]) -> None:
        """Deliveries were written for these."""
        for name in endpoints:
            if name in self._senders:
                self._senders[name].wake()

    def end(self) -> None:
        """Take nothing more; `run` ends once what is under way has ended."""
        for sender in self._senders.values():
            sender.end()

    async def run(self) -> None:
        """Send what waits, until cancelled or ended."""
        async with trio.open_nursery() as nursery:
            for sender in self._senders.values():
                nursery.start_soon(sender.run)

    async def tried(self, asked: TryWebhook) -> WebhookTried:
        """Try to send a `webhook.test` now, and return the outcome."""
        outcome = await self._try(asked)
        return WebhookTried(asked.request_id, outcome.kind, outcome.status, outcome.error)

    async def _try(self, asked: TryWebhook) -> AttemptOutcome:
        endpoint = self._endpoints.get(asked.endpoint)
        if endpoint is None:
            return AttemptOutcome(FAILED, None, NOT_CONFIGURED)
        if self._tests >= TESTS_AT_ONCE:
            return AttemptOutcome(FAILED, None, f"{TESTS_AT_ONCE} tests are under way already")
        try:
            now = self._clock.now()
        except ClockError:
            return AttemptOutcome(FAILED, None, "the clock is wrong")
        self._tests += 1
        try:
            delivery = self._delivery(asked, now)
            return await self._post.attempt(endpoint, delivery, int(now), trio.CapacityLimiter(1))
        finally:
            self._tests -= 1

    def _delivery(self, asked: TryWebhook, now: float) -> Delivery:
        body = {
            "data": {}, "gateway_version": self._version, "id": asked.event_id, "timestamp": iso(now), "type": TEST,
        }  # fmt: skip
        return Delivery(
            seq=0, event_id=asked.event_id, kind=TEST, endpoint=asked.endpoint,
            payload=msgspec.json.encode(body).decode(), attempt=1,
        )  # fmt: skip
