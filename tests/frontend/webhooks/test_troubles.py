"""Deliveries while something of the gateway's own fails: the ledger, the clock, the room for what waits."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio

from frontend.deadlines import WebhookDeadlines
from frontend.notary.errors import NotaryUnavailable
from frontend.webhooks.delivery import Post
from ipc.settings import WebhookSettings
from tests.frontend.webhooks.samples import asker, counted, hook, kept, named, notifying_core, settled
from tests.frontend.webhooks.test_sender import BUSY, FINE, call
from tests.support.front_core import Core, hangs, refuses
from tests.support.logs import capture_logs
from tests.support.webhook_receiver import Receiver, holds, says
from tests.support.worker_desk import until

FULL = NotaryUnavailable("the disk is full")

SAYS_IT, SAYS_IT_IS_OVER = "webhooks wait: the ledger does not answer", "webhooks go on: the ledger answers again"


AT_ONCE = WebhookDeadlines(look_again_seconds=0.02, try_again_seconds=0.02)


def troubled_core(
    folder: Path, receiver: Receiver, *hooks: WebhookSettings, deadlines: WebhookDeadlines = AT_ONCE
) -> AbstractAsyncContextManager[Core]:
    return notifying_core(folder, receiver, *hooks, deadlines=deadlines)


@pytest.mark.parametrize(
    ("operation", "answer", "most"),
    [
        ("NextDelivery", FINE, 1), ("ClaimDeliveries", FINE, 1), ("SettleDelivery", FINE, 1),
        ("SettleDelivery", says(404), 1), ("SettleDelivery", BUSY, 4),
    ],
)  # fmt: skip
async def test_a_ledger_that_fails_is_waited_for_and_nothing_is_lost_or_sent_too_often(
    tmp_path: Path, receiver: Receiver, operation: str, answer: Any, most: int
) -> None:
    receiver.answer = answer
    async with troubled_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            asker(core).faults[operation] = refuses(FULL)
            asked = asker(core).asked.count
            event_id = await call(core)
            await until(lambda: asked(operation) >= 5)
            assert len(kept(tmp_path, "outbox")) == 1
            assert len(named(logs, SAYS_IT)) == 1
            asker(core).faults.clear()
            await settled(tmp_path)
            await until(lambda: bool(named(logs, SAYS_IT_IS_OVER)))
        assert (len(named(logs, SAYS_IT)), len(named(logs, SAYS_IT_IS_OVER))) == (1, 1)
        assert receiver.ids == [event_id] * most


async def test_a_claim_whose_word_was_lost_ends_by_itself(tmp_path: Path, receiver: Receiver) -> None:
    async def does_once_and_says_nothing(operation: Any, args: Any, kwargs: Any) -> Any:
        asker(core).faults.clear()
        await operation(*args, **kwargs)
        raise FULL

    async with troubled_core(tmp_path, receiver) as core:
        asker(core).faults["ClaimDeliveries"] = does_once_and_says_nothing
        event_id = await call(core)
        await until(lambda: [row["attempts"] for row in kept(tmp_path, "outbox")][:1] == [1])
        core.clock.ahead = 60 + WebhookDeadlines().claim_margin_seconds + 1
        await settled(tmp_path)
        assert receiver.ids == [event_id]


@pytest.mark.parametrize("operation", ["NextDelivery", "ClaimDeliveries"])
async def test_a_fault_of_ours_does_not_end_it(tmp_path: Path, receiver: Receiver, operation: str) -> None:
    async with troubled_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            asker(core).faults[operation] = refuses(RuntimeError("hush"))
            event_id = await call(core)
            await until(lambda: len(named(logs, "due deliveries could not be read")) >= 3)
            asker(core).faults.clear()
            await settled(tmp_path)
        assert receiver.ids == [event_id]
        assert "hush" not in str(logs)


async def test_an_attempt_that_fails_by_a_fault_of_ours_is_a_failure_like_others(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, times = Post._send, 2

    async def breaks(self: Post, *args: Any) -> None:
        nonlocal times
        times -= 1
        if times >= 0:
            raise RuntimeError("https://hush.test/")
        await send(self, *args)

    monkeypatch.setattr(Post, "_send", breaks)
    async with troubled_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            event_id = await call(core)
            await settled(tmp_path)
        said = named(logs, "an attempt to deliver failed: internal error")
        assert [(one["endpoint"], one["why"]) for one in said] == [("chat", "RuntimeError")] * 2
        assert receiver.ids == [event_id]
        assert "hush" not in str(logs)


async def test_without_a_clock_nothing_is_sent_and_afterwards_everything(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers.append(BUSY)
    async with troubled_core(tmp_path, receiver, hook(retry_backoff_seconds=(600.0,))) as core:
        event_id = await call(core)
        await until(lambda: counted(core).get("failed") == 1)
        core.clock.is_broken = True
        core.clock.ahead = 601
        asked = asker(core).asked.count("NextDelivery")
        await until(lambda: asker(core).asked.count("NextDelivery") > asked + 3)
        assert receiver.ids == [event_id]
        core.clock.is_broken = False
        await settled(tmp_path)
        assert receiver.ids == [event_id] * 2


async def test_a_clock_that_breaks_during_an_attempt_does_not_undo_it(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers += [holds(), holds(404)]
    async with troubled_core(tmp_path, receiver) as core:
        await call(core)
        await call(core)
        await until(lambda: len(receiver.received) == 2)
        core.clock.is_broken = True
        receiver.let_go.set()
        await settled(tmp_path)
        assert len(kept(tmp_path, "given_up")) == 1
        core.clock.is_broken = False


async def test_a_clock_that_was_set_back_makes_nothing_wait_for_the_time_it_told(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with troubled_core(tmp_path, receiver) as core:
        core.clock.ahead = 365 * 24 * 3600
        asker(core).faults["NextDelivery"] = refuses(FULL)
        event_id = await call(core)
        core.clock.ahead = 0
        asker(core).faults.clear()
        await settled(tmp_path)
        assert receiver.ids == [event_id]


# ------------------------------------------------------------------ the room for what waits


async def test_its_end_is_not_held_up_by_a_ledger_that_hangs(tmp_path: Path, receiver: Receiver) -> None:
    reached = trio.Event()
    with trio.fail_after(60):
        async with troubled_core(tmp_path, receiver) as core:
            asker(core).faults["SettleDelivery"] = hangs(reached)
            await call(core)
            await reached.wait()
