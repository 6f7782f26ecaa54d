"""The outcomes of a delivery: tried again, delivered, given up; and its cost for other deliveries."""

from pathlib import Path
from typing import Any

import pytest
import trio
from standardwebhooks import Webhook, WebhookVerificationError

from frontend.deadlines import WebhookDeadlines
from frontend.webhooks.sender import AT_ONCE, ROUNDED_MS, trace_of
from notary.ledger.message import body_of
from tests.frontend.webhooks.samples import (
    SECRET,
    asker,
    counted,
    event_ids,
    hook,
    kept,
    named,
    notifying_core,
    settled,
)
from tests.notary.samples import make_event
from tests.support.breakable_notary import Asking
from tests.support.front_core import Core
from tests.support.logs import capture_logs
from tests.support.webhook_receiver import Receiver, hangs_up, holds, redirects, says, webhook_receiver
from tests.support.worker_desk import until

FINE, BUSY = says(200), says(503)
SLOW_SECONDS = 0.05
GONE = "webhooks were given up: their endpoint is not configured any more"


async def call(core: Core) -> str:
    status, answer = await (await core.agent()).call()
    assert status == 200
    (event_id,) = await event_ids(core, trace_id=answer["trace_id"])
    return event_id


async def arrive(receiver: Receiver, count: int) -> None:
    await until(lambda: len(receiver.received) >= count)


async def is_put_off(folder: Path, core: Core, milliseconds: float) -> None:
    """Wait until the first that waits is not due for so long."""
    await until(lambda: any(row["due"] > core.clock.right * 1000 + milliseconds for row in kept(folder, "outbox")[:1]))


async def counts_orphans(core: Core, count: int, logs: list[dict[str, Any]]) -> None:
    """Wait until so many of endpoints that are gone are counted, and until that is said if there are any."""
    await until(lambda: counted(core, "other").get("not_configured", 0) == count)
    await until(lambda: len(named(logs, GONE)) == bool(count))


async def counts_one_delivery(core: Core) -> None:
    """Wait until that is all that is counted: an attempt is, once what became of it is durable."""
    await until(lambda: counted(core) == {"delivered": 1})


async def test_what_is_delivered_is_forgotten(tmp_path: Path, receiver: Receiver) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        event_id = await call(core)
        await settled(tmp_path)
        assert receiver.ids == [event_id]
        assert kept(tmp_path, "given_up") == []
        await counts_one_delivery(core)


@pytest.mark.parametrize("answer", [says(404), says(400), says(429), redirects("http://10.0.0.1/")], ids=range(4))
async def test_a_refusal_is_not_tried_again(tmp_path: Path, receiver: Receiver, answer: Any) -> None:
    receiver.answer = answer
    async with notifying_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            event_id = await call(core)
            await until(lambda: bool(named(logs, "a webhook was given up")))
        (row,) = kept(tmp_path, "given_up")
        assert kept(tmp_path, "outbox") == []
        assert receiver.ids == [event_id] == [row["event_id"]]
        assert (row["attempts"], row["kind"], row["endpoint"]) == (1, "action.executed", "chat")
        assert row["payload"].encode() == receiver.received[0].body
        assert row["error"].startswith("the receiver answered ")
        assert counted(core) == {"failed": 1, "rejected": 1}


@pytest.mark.parametrize("failure", [BUSY, hangs_up, holds()], ids=["5xx", "no answer", "late"])
async def test_a_failure_is_tried_again_as_the_same_message_signed_anew(
    tmp_path: Path, receiver: Receiver, failure: Any
) -> None:
    timeout = 60.0
    receiver.answers += [failure, failure]
    if failure not in (BUSY, hangs_up):
        timeout, receiver.answers = 1.0, [failure]
    async with notifying_core(tmp_path, receiver, hook(timeout_seconds=timeout, max_retries=10)) as core:
        event_id = await call(core)
        await settled(tmp_path)
        receiver.let_go.set()
        assert len(receiver.ids) >= (3 if timeout == 60.0 else 2)
        assert set(receiver.ids) == {event_id}
        assert len({one.body for one in receiver.received}) == 1
        for one in receiver.received:
            Webhook(SECRET).verify(one.body, one.headers)
        assert kept(tmp_path, "given_up") == []
        await until(lambda: counted(core).get("delivered") == 1)
        assert counted(core)["failed"] >= len(receiver.ids) - 1


async def test_after_the_last_retry_it_is_set_aside_with_a_warning_that_names_everything(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = says(502)
    async with notifying_core(tmp_path, receiver, hook(max_retries=2)) as core:
        with capture_logs() as logs:
            event_id = await call(core)
            await until(lambda: bool(named(logs, "a webhook was given up")))
        (event,) = await core.events(event_type="ActionCall")
        (said,) = named(logs, "a webhook was given up")
        assert said == {
            "event": "a webhook was given up", "log_level": "warning", "endpoint": "chat",
            "event_type": "action.executed", "event_id": event_id, "status": 502,
            "error": "the receiver answered 502", "attempts": 3, "trace_id": event["trace_id"],
        }  # fmt: skip
        (row,) = kept(tmp_path, "given_up")
        assert (row["event_id"], row["attempts"], row["error"]) == (event_id, 3, "the receiver answered 502")
        assert receiver.ids == [event_id] * 3
        assert counted(core) == {"failed": 3, "exhausted": 1}


async def test_pauses_are_kept_by_the_clock(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers += [BUSY, BUSY]
    async with notifying_core(tmp_path, receiver, hook(retry_backoff_seconds=(600.0, 1200.0))) as core:
        await call(core)
        for attempt, pause in ((1, 600_000), (2, 1_200_000)):
            await arrive(receiver, attempt)
            await is_put_off(tmp_path, core, pause / 2)
            (row,) = kept(tmp_path, "outbox")
            assert row["attempts"] == attempt
            assert row["due"] <= core.clock.right * 1000 + pause + ROUNDED_MS
            core.clock.ahead += pause / 1000
        await settled(tmp_path)
    assert len(receiver.received) == 3


async def test_a_slow_claim_shortens_no_pause(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = BUSY
    async with notifying_core(tmp_path, receiver, hook(retry_backoff_seconds=(600.0,))) as core:
        claimed_at = []

        async def slow(operation: Asking, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            answer = await operation(*args, **kwargs)
            await trio.sleep(SLOW_SECONDS)
            claimed_at.append(core.clock.right)
            return answer

        asker(core).faults["ClaimDeliveries"] = slow
        await call(core)
        await is_put_off(tmp_path, core, 300_000)
        (row,) = kept(tmp_path, "outbox")
        assert row["due"] >= (claimed_at[0] + 600) * 1000


async def test_two_endpoints_do_not_wait_for_each_other(tmp_path: Path, receiver: Receiver) -> None:
    with webhook_receiver() as stuck:
        stuck.answer = holds()
        egress = {"hooks.test": receiver.address, "stuck.test": stuck.address}
        hooks = (hook(name="stuck", url="http://stuck.test/"), hook())
        async with notifying_core(tmp_path, egress, *hooks) as core:
            ids = [await call(core) for _ in range(10)]
            await until(lambda: len(receiver.received) == 10)
            assert sorted(receiver.ids) == sorted(ids)
            await until(lambda: len(stuck.received) == AT_ONCE)
            await until(lambda: {row["endpoint"] for row in kept(tmp_path, "outbox")} == {"stuck"})
            waiting = kept(tmp_path, "outbox")
            assert sum(row["attempts"] for row in waiting) == len(stuck.received) == stuck.connections
            assert (await core.operate("GET", "/v1/admin/status"))[1]["webhooks"] == {
                "active": True, "pending_deliveries": 10
            }  # fmt: skip
            stuck.let_go.set()
            await settled(tmp_path)
            assert sorted(stuck.ids) == sorted(ids)


async def test_a_secret_may_be_replaced_while_the_gateway_runs(tmp_path: Path, receiver: Receiver) -> None:
    file = tmp_path / "hook"

    def put(secret: str) -> None:
        new = tmp_path / "new"
        new.write_text(f"{secret}\n")
        new.chmod(0o600)
        new.rename(file)

    put(SECRET)
    async with notifying_core(tmp_path, receiver, hook(secret=None, secret_file=str(file), max_retries=10)) as core:
        await call(core)
        await settled(tmp_path)
        put("the secret that follows it")
        await call(core)
        await settled(tmp_path)
        first, second = receiver.received
        Webhook(SECRET).verify(first.body, first.headers)
        Webhook(b"the secret that follows it").verify(second.body, second.headers)
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(second.body, second.headers)


async def test_a_disabled_endpoint_hears_nothing_and_keeps_what_waits(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = BUSY
    slow = hook(name="off", retry_backoff_seconds=(600.0,))
    async with notifying_core(tmp_path, receiver, slow, hook()) as core:
        await call(core)
        await until(lambda: len(receiver.received) >= 2)
    receiver.received.clear()
    receiver.answer = FINE
    off = hook(name="off", disable=True)
    async with notifying_core(tmp_path, receiver, off, hook(), front_id="front-1-b") as core:
        core.clock.ahead = 7000
        event_id = await call(core)
        await until(lambda: event_id in receiver.ids)
        await until(lambda: {row["endpoint"] for row in kept(tmp_path, "outbox")} == {"off"})
        assert len(kept(tmp_path, "outbox")) == 1
        status = (await core.operate("GET", "/v1/admin/status"))[1]["webhooks"]
        assert status == {"active": True, "pending_deliveries": 1}
    async with notifying_core(tmp_path, receiver, hook(name="off"), hook(), front_id="front-1-c") as core:
        core.clock.ahead = 8000
        await settled(tmp_path)


async def test_what_waits_for_an_endpoint_that_is_gone_is_given_up_with_one_warning(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = BUSY
    async with notifying_core(tmp_path, receiver, hook(name="former", retry_backoff_seconds=(600.0,))) as core:
        for _ in range(3):
            await call(core)
        await until(lambda: len(receiver.received) == 3)
        await until(lambda: all(row["attempts"] == 1 for row in kept(tmp_path, "outbox")))
    said = []
    for hooks, dropped in (((hook(disable=True),), 3), ((hook(),), 0)):
        with capture_logs() as logs:
            async with notifying_core(tmp_path, receiver, *hooks, front_id=f"front-1-{dropped}") as core:
                await settled(tmp_path)
                await counts_orphans(core, dropped, logs)
        said += named(logs, GONE)
    assert [(one["endpoint"], one["count"]) for one in said] == [("former", 3)]
    assert len(kept(tmp_path, "given_up")) == 3
    assert len(receiver.received) == 3


async def test_a_stop_cuts_what_is_under_way_and_the_next_start_sends_it_again(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = holds()
    async with notifying_core(tmp_path, receiver) as core:
        event_id = await call(core)
        await until(lambda: len(receiver.received) == 1)
    assert not receiver.let_go.is_set(), "nobody waited for the receiver"
    receiver.answer = FINE
    async with notifying_core(tmp_path, receiver, front_id="front-1-b") as core:
        core.clock.ahead = 60 + WebhookDeadlines().claim_margin_seconds + 1
        await settled(tmp_path)
        assert receiver.ids == [event_id] * 2
        await counts_one_delivery(core)


async def test_an_attempt_that_nobody_lived_to_judge_is_made_again_whatever_the_retries(
    tmp_path: Path, receiver: Receiver
) -> None:
    receiver.answer = holds()
    for number in range(2):
        async with notifying_core(tmp_path, receiver, hook(max_retries=0), front_id=f"front-1-{number}") as core:
            core.clock.ahead = number * 100
            if number == 0:
                await call(core)
            await arrive(receiver, number + 1)
    receiver.answer = BUSY
    async with notifying_core(tmp_path, receiver, hook(max_retries=0), front_id="front-1-c") as core:
        core.clock.ahead = 200
        await settled(tmp_path)
    (row,) = kept(tmp_path, "given_up")
    assert row["attempts"] == len(receiver.received) == 3


async def test_what_is_new_is_sent_at_once_and_a_retry_when_it_is_due(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers += [BUSY, FINE, BUSY]
    never_looks = WebhookDeadlines(look_again_seconds=100_000.0)
    async with notifying_core(tmp_path, receiver, deadlines=never_looks) as core:
        for _ in range(10):
            await call(core)
        await settled(tmp_path)
        assert len(receiver.received) == 12


async def test_what_any_front_wrote_is_sent_and_what_a_deliverer_of_before_has_claimed_is_not_sent_meanwhile(
    tmp_path: Path, receiver: Receiver
) -> None:
    with webhook_receiver() as stuck:
        stuck.answer = holds()
        async with notifying_core(tmp_path, stuck) as one:
            ids = [await call(one) for _ in range(AT_ONCE)]
            await until(lambda: len(stuck.received) == AT_ONCE)
            async with notifying_core(tmp_path, receiver, front_id="front-2-a") as other:
                ids += [await call(front) for front in (one, other) for _ in range(4)]
                await until(lambda: len(receiver.received) == 8)
                assert sorted(stuck.ids + receiver.ids) == sorted(ids)


async def test_a_call_does_not_wait_for_a_receiver(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answer = holds()
    async with notifying_core(tmp_path, receiver) as core:
        with trio.fail_after(60):
            for _ in range(20):
                await call(core)
        assert not receiver.let_go.is_set()
        assert len(kept(tmp_path, "outbox")) == 20


def test_the_trace_of_a_body_is_found_again() -> None:
    assert trace_of(body_of(make_event(trace_id="trc_7"), "action.denied", "0.1.0")) == "trc_7"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"data":3}', '{"data":{}}', '{"data":{"trace_id":7}}', "null"])
def test_what_is_no_body_has_no_trace(text: str) -> None:
    assert trace_of(text) is None
