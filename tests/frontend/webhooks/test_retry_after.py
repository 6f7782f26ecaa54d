"""Receivers that say when to come again, and those that say never to."""

from email.utils import formatdate
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from frontend.deadlines import WebhookDeadlines
from frontend.webhooks import sender
from frontend.webhooks.endpoints import open_endpoints
from frontend.webhooks.outcome import FAILED, AttemptOutcome, asked_pause
from frontend.webhooks.sender import Sender, SenderContext, Trouble
from ipc.evidence.records import Delivery
from ipc.operations.deliveries import SettleDelivery
from tests.frontend.webhooks.samples import DELIVERY, delivering, hook, kept, named, notifying_core, settled
from tests.frontend.webhooks.test_sender import arrive, call, is_put_off
from tests.support.front_core import TestClock
from tests.support.logs import capture_logs
from tests.support.webhook_receiver import Receiver, says
from tests.support.worker_desk import until

NOW = 1_800_000_000.0
PAUSES = (100.0, 500.0, 1000.0)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7), ("0", 0), (formatdate(NOW + 90, usegmt=True), 90), (formatdate(NOW - 90, usegmt=True), 0),
        ("", 0), ("-5", 0), ("1.5", 0), ("soon", 0), ("٣", 0), ("9" * 65, 0),
        ("Fri, 99 Jan 2027 00:00:00 GMT", 0), ("Thu, 26 Nov 99999 00:00:00 GMT", 0),
        (f"Fri, 01 Jan {'9' * 20} 00:00:00 GMT", 0), (f"Fri, 01 Jan 2100 00:00:00 +{'9' * 20}", 0),
    ],
)  # fmt: skip
def test_a_pause_is_a_number_of_seconds_or_a_date(value: str, seconds: float) -> None:
    assert asked_pause(value, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("asked", "pauses", "waits"),
    [("500", PAUSES, 500), ("5", PAUSES, 100), ("999999", PAUSES, 1600), ("soon", PAUSES, 100),
     ("999999", (1800.0, 3600.0, 3600.0), 3600)],
    ids=["more", "less", "far", "no", "an hour at most"],
)  # fmt: skip
async def test_a_retry_waits_as_long_as_the_receiver_asks_up_to_the_end_of_the_schedule(
    tmp_path: Path, receiver: Receiver, asked: str, pauses: tuple[float, ...], waits: float
) -> None:
    receiver.answer = says(503, f"Retry-After: {asked}")
    async with notifying_core(tmp_path, receiver, hook(retry_backoff_seconds=pauses)) as core:
        began = core.clock.right
        await call(core)
        await is_put_off(tmp_path, core, waits * 900)
        (row,) = kept(tmp_path, "outbox")
        assert began + waits <= row["due"] / 1000 <= core.clock.right + waits + 1


async def test_no_retry_is_put_off_beyond_the_end_that_the_first_failure_set(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = says(503, "Retry-After: 1550")
    async with notifying_core(tmp_path, receiver, hook(retry_backoff_seconds=PAUSES)) as core:
        await call(core)
        await is_put_off(tmp_path, core, 1_400_000)
        core.clock.ahead += 1551
        await arrive(receiver, 2)
        await is_put_off(tmp_path, core, 400_000)
        (row,) = kept(tmp_path, "outbox")
        assert row["due"] / 1000 <= core.clock.right + 500 + 1  # the pause of its own, and no more than that


async def test_an_endpoint_that_answers_410_is_sent_nothing_more_and_keeps_what_waits(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = says(410)
    async with notifying_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            await call(core)
            await until(lambda: bool(named(logs, "a webhook is disabled until the next reload: it answered 410")))
        await settled(tmp_path)
        receiver.answer = says(200)
        await call(core)
        (row,) = kept(tmp_path, "outbox")
        assert (row["attempts"], len(receiver.received)) == (0, 1)
        async with delivering(core):  # as after a reload
            await settled(tmp_path)
        assert len(receiver.received) == 2


class EndedElsewhere:
    """An outbox whose deliveries another host ends once they were put off here: each is claimed once."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.put_off = 0

    async def next_due(self, _: str) -> int:
        await trio.lowlevel.checkpoint()
        return 0

    async def claim(self, _: str, *, now: int, until: int, limit: int) -> list[Delivery]:
        await trio.lowlevel.checkpoint()
        return [replace(DELIVERY, seq=next(self._numbers)) for _ in range(limit)]

    async def settle(self, asked: SettleDelivery) -> None:
        await trio.lowlevel.checkpoint()
        self.put_off += asked.due is not None


class Failing:
    async def attempt(self, *_: Any) -> AttemptOutcome:
        await trio.lowlevel.checkpoint()
        return AttemptOutcome(FAILED, 503)


async def test_little_is_remembered_of_deliveries_that_another_host_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MOST_ENDS", 8)
    outbox: Any = EndedElsewhere()
    context = SenderContext(outbox, Failing(), TestClock(), Trouble(), WebhookDeadlines(), lambda _: None)
    one = Sender(open_endpoints((hook(),))[0], context)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.run)
            await until(lambda: outbox.put_off >= 100)
            one.end()
    assert len(one._ends) == 8
