"""Deliveries while something of the gateway's own fails: the ledger, the clock, the room for what waits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from frontend.actions.registry import Registry
from frontend.evidence.ledger import LedgerUnavailable
from frontend.telemetry.metrics import Metrics
from frontend.webhooks import backlog, webhooks
from frontend.webhooks import sender as sending
from frontend.webhooks.backlog import Backlog
from frontend.webhooks.delivery import Post
from tests.frontend.webhooks.samples import event_ids, hook, kept, named, notifying_core, settled
from tests.frontend.webhooks.test_sender import BUSY, FINE, call, counted
from tests.support.front_core import Core, refuses
from tests.support.logs import capture_logs
from tests.support.webhook_receiver import Receiver, holds, says, webhook_receiver
from tests.support.worker_desk import until

FULL = LedgerUnavailable("the disk is full")

SAYS_IT, SAYS_IT_IS_OVER = "webhooks wait: the ledger does not answer", "webhooks go on: the ledger answers again"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as one:
        yield one


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "LOOK_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(sending, "TRY_AGAIN_SECONDS", 0.02)


async def counts_again(core: Core, times: int) -> None:
    """Wait until what waits has been counted so often."""
    await until(lambda: core.ledger.asked.count("waiting") > times)


@pytest.mark.parametrize(
    ("operation", "answer", "most"),
    [
        ("next_due", FINE, 1), ("claim", FINE, 1), ("delivered", FINE, 1), ("give_up", says(404), 1),
        ("put_off", BUSY, 4),
    ],
)  # fmt: skip
async def test_a_ledger_that_fails_is_waited_for_and_nothing_is_lost_or_sent_too_often(
    tmp_path: Path, receiver: Receiver, operation: str, answer: Any, most: int
) -> None:
    receiver.answer = answer
    async with notifying_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            core.ledger.faults[operation] = refuses(FULL)
            asked = core.ledger.asked.count
            event_id = await call(core)
            await until(lambda: asked(operation) >= 5)
            assert len(kept(tmp_path, "outbox")) == 1
            assert len(named(logs, SAYS_IT)) == 1
            core.ledger.faults.clear()
            await settled(tmp_path)
            await until(lambda: bool(named(logs, SAYS_IT_IS_OVER)))
        assert (len(named(logs, SAYS_IT)), len(named(logs, SAYS_IT_IS_OVER))) == (1, 1)
        assert receiver.ids == [event_id] * most


async def test_a_claim_whose_word_was_lost_ends_by_itself(tmp_path: Path, receiver: Receiver) -> None:
    async def does_once_and_says_nothing(operation: Any, args: Any, kwargs: Any) -> Any:
        core.ledger.faults.clear()
        await operation(*args, **kwargs)
        raise FULL

    async with notifying_core(tmp_path, receiver) as core:
        core.ledger.faults["claim"] = does_once_and_says_nothing
        event_id = await call(core)
        await until(lambda: kept(tmp_path, "outbox")[0]["attempts"] == 1)
        core.clock.ahead = 60 + sending.CLAIM_MARGIN_SECONDS + 1
        await settled(tmp_path)
        assert receiver.ids == [event_id]


@pytest.mark.parametrize("operation", ["next_due", "claim"])
async def test_a_fault_of_ours_does_not_end_it(tmp_path: Path, receiver: Receiver, operation: str) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            core.ledger.faults[operation] = refuses(RuntimeError("hush"))
            event_id = await call(core)
            await until(lambda: len(named(logs, "webhooks could not be looked for")) >= 3)
            core.ledger.faults.clear()
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
    async with notifying_core(tmp_path, receiver) as core:
        with capture_logs() as logs:
            event_id = await call(core)
            await settled(tmp_path)
        said = named(logs, "an attempt to deliver failed by a fault of ours")
        assert [(one["endpoint"], one["why"]) for one in said] == [("chat", "RuntimeError")] * 2
        assert receiver.ids == [event_id]
        assert "hush" not in str(logs)


async def test_without_a_clock_nothing_is_sent_and_afterwards_everything(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers.append(BUSY)
    async with notifying_core(tmp_path, receiver, hook(retry_backoff_seconds=(600.0,))) as core:
        event_id = await call(core)
        await until(lambda: core.services.metrics.webhook_deliveries.value("chat", "failed") == 1)
        core.clock.is_broken = True
        core.clock.ahead = 601
        asked = core.ledger.asked.count("next_due")
        await until(lambda: core.ledger.asked.count("next_due") > asked + 3)
        assert receiver.ids == [event_id]
        core.clock.is_broken = False
        await settled(tmp_path)
        assert receiver.ids == [event_id] * 2


async def test_a_clock_that_breaks_during_an_attempt_does_not_undo_it(tmp_path: Path, receiver: Receiver) -> None:
    receiver.answers += [holds(), holds(404)]
    async with notifying_core(tmp_path, receiver) as core:
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
    async with notifying_core(tmp_path, receiver) as core:
        core.clock.ahead = 365 * 24 * 3600
        core.ledger.faults["next_due"] = refuses(FULL)
        event_id = await call(core)
        core.clock.ahead = 0
        core.ledger.faults.clear()
        await settled(tmp_path)
        assert receiver.ids == [event_id]


# ------------------------------------------------------------------ the room for what waits


async def test_what_finds_no_room_is_dropped_counted_and_said_once(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MAX_WAITING", 3)
    receiver.answer = holds()
    async with notifying_core(tmp_path, receiver, hook(), hook(name="other", events=("revocation",))) as core:
        with capture_logs() as logs:
            ids = [await call(core) for _ in range(8)]
        assert [row["event_id"] for row in kept(tmp_path, "outbox")] == ids[:3]
        (said,) = named(logs, "webhooks are dropped: too many wait")
        assert (said["endpoint"], said["log_level"], said["dropped"]) == ("chat", "warning", 1)
        assert counted(core) == {"outbox_full": 5}
        assert len(await event_ids(core, event_type="ActionCall")) == 8, "no event is lost"
        assert (await core.operate("POST", "/v1/admin/revoke-all"))[0] == 200
        assert [row["endpoint"] for row in kept(tmp_path, "outbox")] == ["chat"] * 3 + ["other"], "its own room"
        receiver.let_go.set()
        await until(lambda: core.services.webhooks._backlog._waiting == {"chat": 0, "other": 0})
        event_id = await call(core)
        await settled(tmp_path)
        assert receiver.ids[-1] == event_id, "there is room again"


async def test_a_front_that_starts_knows_what_waits_already(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "MAX_WAITING", 2)
    receiver.answer = BUSY
    row = hook(retry_backoff_seconds=(600.0,))
    async with notifying_core(tmp_path, receiver, row) as core:
        await call(core)
        await call(core)
    async with notifying_core(tmp_path, receiver, row, front_id="front-1-b") as core:
        await until(lambda: core.ledger.asked.count("waiting") > 0)
        await until(lambda: core.services.webhooks._backlog._waiting == {"chat": 2})
        await call(core)
        assert counted(core).get("outbox_full") == 1


async def test_what_another_front_wrote_is_counted_at_the_next_look(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "COUNT_SECONDS", 0.02)
    monkeypatch.setattr(backlog, "MAX_WAITING", 2)
    receiver.answer = holds()
    async with notifying_core(tmp_path, receiver) as core, notifying_core(tmp_path, receiver, front_id="b") as other:
        await call(core)
        await call(core)
        await until(lambda: other.services.webhooks._backlog._waiting == {"chat": 2})
        await call(other)
        assert counted(other) == {"outbox_full": 1}


async def test_counting_goes_on_after_every_failure(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "COUNT_SECONDS", 0.02)
    async with notifying_core(tmp_path, receiver) as core:
        for error in (FULL, RuntimeError("ours")):
            core.ledger.faults["waiting"] = refuses(error)
            await counts_again(core, core.ledger.asked.count("waiting") + 5)
        core.ledger.faults.clear()
        core.services.webhooks._backlog._waiting["chat"] = 77
        await until(lambda: core.services.webhooks._backlog._waiting == {"chat": 0})


async def test_what_the_ledger_did_not_take_does_not_count_as_waiting(tmp_path: Path, receiver: Receiver) -> None:
    async with notifying_core(tmp_path, receiver) as core:
        core.ledger.faults["record"] = core.ledger.faults["append"] = refuses(FULL)
        assert (await core.operate("POST", "/v1/admin/drain"))[1] == {"error": "evidence_persistence_failed"}
        assert core.services.webhooks._backlog._waiting == {"chat": 0}


def test_of_a_flood_of_drops_a_line_a_minute_is_said_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(backlog, "MAX_WAITING", 0)
    metrics = Metrics(Registry)
    full = Backlog(["chat"], metrics, lambda: now)
    with capture_logs() as logs:
        for _ in range(1000):
            assert not full.has_room("chat")
        now = 161.0
        assert not full.has_room("chat")
    assert [one["dropped"] for one in logs] == [1, 1000]
    assert metrics.webhook_drops.value("chat", "outbox_full") == 1001


async def test_its_end_is_not_held_up_by_a_ledger_that_hangs(tmp_path: Path, receiver: Receiver) -> None:
    reached = trio.Event()

    async def hangs(operation: Any, args: Any, kwargs: Any) -> Any:
        reached.set()
        await trio.sleep_forever()

    with trio.fail_after(60):
        async with notifying_core(tmp_path, receiver) as core:
            core.ledger.faults["delivered"] = hangs
            await call(core)
            await reached.wait()
