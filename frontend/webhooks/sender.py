"""The sender for one endpoint: takes due deliveries from the outbox, makes attempts, settles each.

Guarantees: every delivery is tried until it is delivered or given up, no matter which front wrote it; a slow or dead
endpoint delays neither other endpoints nor calls; a delivery that a stop interrupts is due again when its claim ends.
No failure ends the sender.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import trio

from frontend.clock import ClockError, TimeSource
from frontend.deadlines import WebhookDeadlines
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.telemetry.logs import log
from frontend.webhooks.endpoints import WebhookTarget
from frontend.webhooks.outbox import Outbox
from frontend.webhooks.outcome import BLOCKED, DELIVERED, FAILED, GONE, REJECTED, AttemptOutcome, Attempts
from ipc.evidence.records import FAR_MS, Delivery
from ipc.operations.deliveries import SettleDelivery

AT_ONCE: Final = 4
"""Attempts of one endpoint that are under way together."""
ROUNDED_MS: Final = 2
"""Lost where the begin of an attempt and its length are cut to whole milliseconds: no attempt comes sooner than its
pause allows."""
LONGEST_MS: Final = 3600 * 1000
"""The longest pause, asked for by a receiver or configured: the outbox takes a delivery that is due much later for
the result of a wrong clock (`FAR_MS`), and sends it at once."""

MOST_ENDS: Final = 10_000
"""Deliveries whose schedule's end is remembered. A deliverer is not told of what another host has settled."""


class Trouble:
    """Tells of a ledger that does not answer: logs once that it is silent, and once that it answers again."""

    def __init__(self) -> None:
        self._waits: set[object] = set()

    def begins(self, who: object, error: Exception) -> None:
        """It did not answer `who`."""
        if not self._waits:
            log.warning("webhooks wait: the ledger does not answer", cause=str(error))
        self._waits.add(who)

    def ends(self, who: object) -> None:
        """It has answered `who`."""
        if self._waits == {who}:
            log.info("webhooks go on: the ledger answers again")
        self._waits.discard(who)


class SenderContext(msgspec.Struct, frozen=True):
    """The resources that all senders share."""

    outbox: Outbox
    post: Attempts
    clock: TimeSource
    trouble: Trouble
    deadlines: WebhookDeadlines
    on_gone: Callable[[str], None]
    """An endpoint has answered 410."""


class Sender:
    """Sends to one endpoint for as long as it runs."""

    def __init__(self, endpoint: WebhookTarget, means: SenderContext) -> None:
        self._endpoint = endpoint
        self._means = means
        self._deadlines = means.deadlines
        self._free = AT_ONCE
        self._bell = trio.Event()
        self._is_ending = False
        self._is_gone = False
        self._ends: dict[int, int] = {}
        """Deliveries that were put off -> when the last attempt of their schedule would have been, in milliseconds."""
        # A silent name server keeps threads beyond their attempts: this limits them for this endpoint.
        self._lookups = trio.CapacityLimiter(AT_ONCE)

    def wake(self) -> None:
        """Something may be due."""
        self._bell.set()

    def end(self) -> None:
        """Claim no more deliveries; `run` ends once the open attempts have ended."""
        self._is_ending = True
        self.wake()

    async def run(self) -> None:
        """Until cancelled, or ended."""
        async with trio.open_nursery() as nursery:
            while not self._is_ending:
                pause = await self._round(nursery)
                with trio.move_on_after(pause):
                    await self._bell.wait()
                self._bell = trio.Event()

    async def _round(self, nursery: trio.Nursery) -> float:
        """Begin the due deliveries. Return the seconds until the next one, unless one is announced earlier. Never
        raises."""
        if not self._free or self._is_gone:
            return self._deadlines.look_again_seconds
        try:
            pause = await self._begin(nursery)
            self._means.trouble.ends(self)
        except (NotaryUnavailable, NotaryRefused) as error:
            self._means.trouble.begins(self, error)
        except ClockError:
            pass
        except Exception as error:
            log.error("due deliveries could not be read", endpoint=self._endpoint.name, why=type(error).__name__)
        else:
            return pause
        return self._deadlines.try_again_seconds

    async def _begin(self, nursery: trio.Nursery) -> float:
        name, outbox = self._endpoint.name, self._means.outbox
        due = await outbox.next_due(name)
        began, now = trio.current_time(), milliseconds(self._means.clock.now())
        if due is None:
            return self._deadlines.look_again_seconds
        if now < due <= now + FAR_MS:
            return min(self._deadlines.look_again_seconds, (due - now) / 1000)
        until = now + milliseconds(self._endpoint.timeout_seconds + self._deadlines.claim_margin_seconds)
        if self._is_ending:
            return 0.0
        claimed = await outbox.claim(name, now=now, until=until, limit=self._free)
        for delivery in claimed:
            self._free -= 1
            nursery.start_soon(self._deliver, delivery, began, now)
        return 0.0 if claimed else self._deadlines.try_again_seconds

    async def _deliver(self, delivery: Delivery, began: float, now: int) -> None:
        """One attempt and what follows from it. It was `now` by the clock, which is not asked again, when it was
        `began` by trio's: before the claim, so that a slow one shortens no pause."""
        try:
            outcome = await self._means.post.attempt(self._endpoint, delivery, now // 1000, self._lookups)
            await self._settle(delivery, outcome, now + milliseconds(trio.current_time() - began))
        except Exception as error:
            log.error(
                "a delivery is not settled: it is due again when its claim ends",
                endpoint=self._endpoint.name,
                why=type(error).__name__,
            )
        finally:
            self._free += 1
            self.wake()

    async def _settle(self, delivery: Delivery, outcome: AttemptOutcome, now: int) -> None:
        named = partial(SettleDelivery, delivery.seq, delivery.attempt, delivery.event_id)
        if outcome.status == GONE:
            self._close()
        pause = self._endpoint.pause_after(delivery.attempt) if outcome.kind == FAILED else None
        if pause is not None:
            due = now + milliseconds(pause) + ROUNDED_MS
            end = self._end_of(delivery, now)
            asked = min(now + milliseconds(outcome.retry_after), end, now + LONGEST_MS)
            await self._insisted(delivery, named(due=max(due, asked)))
            return
        self._ends.pop(delivery.seq, None)
        if outcome.kind == DELIVERED:
            await self._insisted(delivery, named())
            return
        reason = outcome.kind if outcome.kind in (BLOCKED, REJECTED) else "exhausted"
        await self._insisted(delivery, named(at=now, error=outcome.error, reason=reason))
        told: dict[str, Any] = {} if (trace_id := trace_of(delivery.payload)) is None else {"trace_id": trace_id}
        log.warning(
            "a webhook was given up", endpoint=self._endpoint.name, event_type=delivery.kind,
            event_id=delivery.event_id, status=outcome.status, error=outcome.error, attempts=delivery.attempt, **told,
        )  # fmt: skip

    def _end_of(self, delivery: Delivery, now: int) -> int:
        """When the last attempt of its schedule would have been, as of the first time that it was put off."""
        end = self._ends.setdefault(delivery.seq, now + milliseconds(self._endpoint.pauses_left(delivery.attempt)))
        if len(self._ends) > MOST_ENDS:
            del self._ends[next(iter(self._ends))]  # the oldest
        return end

    def _close(self) -> None:
        """Send nothing more to a receiver that is gone, until a reload; deliveries go on waiting."""
        if not self._is_gone:
            self._is_gone = True
            log.warning("a webhook is disabled until the next reload: it answered 410", endpoint=self._endpoint.name)
            self._means.on_gone(self._endpoint.name)

    async def _insisted(self, delivery: Delivery, settled: SettleDelivery) -> None:
        """Settle a final outcome until the ledger takes it, so that a moment's failure does not send the delivery
        again. Meanwhile no delivery is claimed; once another process has the claim, settling has no effect."""
        while True:
            try:
                await self._means.outbox.settle(settled)
            except (NotaryUnavailable, NotaryRefused) as error:
                self._means.trouble.begins(delivery, error)
                await trio.sleep(self._deadlines.try_again_seconds)
            else:
                return self._means.trouble.ends(delivery)


def milliseconds(seconds: float) -> int:
    """As the outbox counts: whole ones that have passed."""
    return int(seconds * 1000)


def trace_of(payload: str) -> str | None:
    """The trace id that a notification's body names."""
    try:
        trace_id = msgspec.json.decode(payload)["data"]["trace_id"]
    except (ValueError, LookupError, TypeError):
        return None
    return trace_id if isinstance(trace_id, str) else None
