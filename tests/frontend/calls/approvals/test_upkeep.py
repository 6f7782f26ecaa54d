"""What becomes of holds that nobody decides and of claims that nobody settles, whatever fails meanwhile."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import convert

from frontend.calls.approvals.states import APPROVED, CLAIMED, DENIED, FAILED, PENDING
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import LedgerUnavailable
from frontend.stores.interface import StoreUnavailable
from frontend.webhooks.kinds import kinds_of
from tests.support.front_core import HOLD, Core, does_and_says, front_core, hangs, refuses, then
from tests.support.held_calls import corrupt, held, state_of, told

GONE = StoreUnavailable("the store is gone")
FULL = LedgerUnavailable("the disk is full")
EXPIRED = ("ApprovalExpired", "deny", None)


async def claim(core: Core, approval_id: str, holder: str) -> None:
    """A front claims it, and dies."""
    moved = await core.store.approval_move(approval_id, PENDING, CLAIMED, outcome="{}", holder=holder)
    assert moved is not None


# ------------------------------------------------------------------ expiry


async def test_holds_that_expire_while_the_ledger_fails_get_their_evidence_and_their_call_later(
    tmp_path: Path,
) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agents = [await held(core) for _ in range(3)]
        core.clock.ahead = 301
        core.ledger.faults["append"] = refuses(FULL)
        for _ in range(2):
            await core.services.upkeep.round()
        assert [await core.remaining(agent) for agent, _ in agents] == [2, 2, 2]
        core.ledger.faults.clear()
        await core.services.upkeep.round()
        await core.services.upkeep.round()
        for agent, approval_id in agents:
            assert (await told(core, approval_id))[-1] == EXPIRED
            assert len(await told(core, approval_id)) == 2
            assert await core.remaining(agent) == 3


async def test_a_front_that_dies_between_expiry_and_evidence_leaves_both_to_its_successor(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core)
        core.clock.ahead = 301
        await core.store.approval_expire(core.clock.now(), 10)
        for _ in range(2):  # a successor, and its successor
            await core.services.upkeep.at_start(("front-1-a",))
        assert [kind for kind, *_ in await told(core, approval_id)] == ["ActionCall", "ApprovalExpired"]
        assert await core.remaining(agent) == 3


async def test_an_expired_hold_that_can_not_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        _, broken = await held(core)
        agent, whole = await held(core)
        await corrupt(core, broken, "{")
        core.clock.ahead = 301
        await core.services.upkeep.round()
        assert await told(core, broken) == [("ActionCall", "pending_approval", None), EXPIRED]
        assert (await told(core, whole))[-1] == EXPIRED
        assert await core.remaining(agent) == 3


async def test_an_expired_hold_is_404_to_its_operator_and_still_listed_and_polled(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        agent, approval_id = await held(core)
        core.clock.ahead = 301
        for swept in (False, True):
            if swept:
                await core.services.upkeep.round()
            path = f"/v1/approvals/{approval_id}"
            assert await core.operate("GET", path) == (404, {"error": "approval_not_found"})
            assert (await core.operate("GET", "/v1/approvals?status=pending"))[1]["count"] == 0
            (item,) = (await core.operate("GET", "/v1/approvals"))[1]["approvals"]
            assert item["state"] == "expired"
            assert b'"state":"expired"' in (await agent.send("GET", f"{path}/poll")).body


@pytest.mark.parametrize("error", [GONE, FULL, ValueError("strange"), RuntimeError("ours")])
async def test_no_failure_ends_the_upkeep(tmp_path: Path, error: Exception) -> None:
    async with front_core(tmp_path) as core:
        await held(core)
        core.clock.ahead = 301
        for operation in ("approval_expire", "approval_claimed_by_others", "sweep"):
            core.store.faults[operation] = refuses(error)
        core.ledger.faults["append"] = refuses(error)
        await core.services.upkeep.round()
        core.store.faults.clear()
        core.ledger.faults.clear()
        await core.services.upkeep.round()
        assert [record.state for record in await core.store.approval_list(None, 10)] == ["expired"]
        core.clock.is_broken = True
        await core.services.upkeep.round()


async def test_what_can_not_be_expired_does_not_keep_the_store_from_being_swept(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        core.store.faults["approval_expire"] = refuses(GONE)
        await core.services.upkeep.round()
        assert "sweep" in core.store.asked


# ------------------------------------------------------------------ what a front that died had stored


async def untold(core: Core, lasts: float = 0.0) -> tuple[Any, str]:
    """A hold that a front stored, and died before its event."""
    agent, core.policy.answer = await core.agent(), HOLD
    core.store.faults["approval_move"], core.ledger.faults["append"] = refuses(GONE), refuses(FULL)
    assert (await agent.call(body={"n": 1}))[0] == 500
    core.store.faults.clear()
    core.ledger.faults.clear()
    (record,) = await core.store.approval_list((PENDING,), 10)
    assert await told(core, record.approval_id) == []
    core.clock.ahead += lasts
    return agent, record.approval_id


async def test_a_hold_that_a_front_did_not_live_to_tell_of_is_told_of_by_its_successor(tmp_path: Path) -> None:
    """Or nobody would hear that it waits: the same call again is no news."""
    async with front_core(tmp_path) as core:
        agent, approval_id = await untold(core)
        for _ in range(2):  # a successor, and its successor
            await core.services.upkeep.at_start(("front-1-a",))
        assert await told(core, approval_id) == [("ActionCall", "pending_approval", None)]
        (event,) = await core.events(decision="pending_approval")
        assert kinds_of(convert(event, AuditEvent)) == ("approval.pending",)
        assert event["session_id"] == agent.session_id
        assert (await agent.call(body={"n": 1}))[1]["approval_id"] == approval_id


async def test_a_hold_that_was_told_of_is_not_told_of_again(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        _agent, approval_id = await held(core)
        await core.services.upkeep.at_start(("front-1-a",))
        assert await told(core, approval_id) == [("ActionCall", "pending_approval", None)]


async def test_of_an_untold_hold_that_is_over_only_its_end_is_told(tmp_path: Path) -> None:
    async with front_core(tmp_path, lease_ttl_seconds=3600) as core:
        _agent, approval_id = await untold(core, lasts=301)
        await core.services.upkeep.at_start(("front-1-a",))
        await core.services.upkeep.round()
        assert await told(core, approval_id) == [EXPIRED]


# ------------------------------------------------------------------ claims of a front that died


async def test_a_claim_without_an_intent_is_ended_given_back_and_told(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        await claim(core, approval_id, "front-0-dead")
        await core.services.upkeep.at_start(("front-1-a",))
        assert await state_of(core, approval_id) == FAILED
        assert await core.remaining(agent) == 3
        assert (await told(core, approval_id))[-1] == ("ActionCall", "error", "interrupted")


async def test_a_claim_of_a_front_that_lives_is_left_alone(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        _agent, approval_id = await held(core)
        await claim(core, approval_id, "front-2-lives")
        await core.services.upkeep.at_start(("front-1-a", "front-2-lives"))
        await core.services.upkeep.round()
        assert await state_of(core, approval_id) == CLAIMED


async def test_two_fronts_that_start_at_once_end_a_claim_once(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core, front_core(tmp_path, front_id="front-2-b", workers=0) as other:
        agent, approval_id = await held(core)
        await core.store.budget_debit(agent.session_id)  # so that a second refund would show
        await claim(core, approval_id, "front-0-dead")
        live = ("front-1-a", "front-2-b")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.services.upkeep.at_start, live)
            nursery.start_soon(other.services.upkeep.at_start, live)
        assert await core.remaining(agent) == 2
        assert [end for *_, end in await told(core, approval_id)].count("interrupted") == 1


async def test_a_claim_that_was_dispatched_is_not_given_back_and_never_run_again(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        reached = trio.Event()
        core.ledger.faults["begin"] = hangs(reached, first_does=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(core.operate, "POST", f"/v1/approvals/{approval_id}/approve")
            with trio.fail_after(60):
                await reached.wait()
            nursery.cancel_scope.cancel()
        await core.services.upkeep.at_start(("front-9-next",))
        assert await state_of(core, approval_id) == FAILED
        assert await core.remaining(agent) == 2
        assert await core.ledger.unresolved_count() == 1
        assert (await told(core, approval_id))[-1] == ("ActionCall", "error", "evidence_persistence_failed")


@pytest.mark.parametrize("body", ["", "{", '{"plan": 1}'])
async def test_a_claim_that_can_not_be_read_does_not_keep_the_gateway_from_starting(tmp_path: Path, body: str) -> None:
    async with front_core(tmp_path) as core:
        _, broken = await held(core)
        agent, whole = await held(core)
        for approval_id in (broken, whole):
            await claim(core, approval_id, "front-0-dead")
        await corrupt(core, broken, body)
        await core.services.upkeep.at_start(("front-1-a",))
        assert [await state_of(core, one) for one in (broken, whole)] == [FAILED, FAILED]
        assert await core.remaining(agent) == 3


async def test_a_ledger_that_somebody_changed_does_not_keep_the_gateway_from_starting(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        _agent, approval_id = await held(core)
        await claim(core, approval_id, "front-0-dead")
        with sqlite3.connect(tmp_path / "ledger.sqlite3") as connection:
            connection.execute("UPDATE events SET bytes = x'5b5d' WHERE event_type = 'ActionCall'")
        connection.close()
        await core.services.upkeep.at_start(("front-1-a",))
        assert await state_of(core, approval_id) == FAILED
        assert (await core.operate("GET", "/v1/audit/verify"))[1]["intact"] is False


# ------------------------------------------------------------------ claims that a failing store left behind


async def test_an_approval_that_was_executed_and_not_ended_is_ended_by_its_receipt(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)

        def breaks() -> None:
            core.store.faults["approval_move"] = refuses(GONE)

        core.ledger.faults["record"] = then(breaks)
        assert (await core.operate("POST", f"/v1/approvals/{approval_id}/approve"))[0] == 200
        assert await state_of(core, approval_id) == CLAIMED
        await core.services.upkeep.round()
        core.store.faults.clear()
        await core.services.upkeep.round()
        assert await state_of(core, approval_id) == APPROVED
        assert b'"receipt_id":"rcpt_' in (await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).body
        assert await core.remaining(agent) == 2


async def test_a_denial_that_was_told_and_not_ended_is_ended_as_a_denial(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)

        async def only_the_claim(operation: Any, args: Any, kwargs: Any) -> Any:
            if args[2] != CLAIMED:
                raise GONE
            return await operation(*args, **kwargs)

        core.store.faults["approval_move"] = only_the_claim
        status, _ = await core.operate("POST", f"/v1/approvals/{approval_id}/deny", {"reason": "no"})
        assert status == 200
        core.store.faults.clear()
        await core.services.upkeep.round()
        assert await state_of(core, approval_id) == DENIED
        assert await core.remaining(agent) == 3
        assert b'"deny_reason":"no"' in (await agent.send("GET", f"/v1/approvals/{approval_id}/poll")).body
        assert len(await told(core, approval_id)) == 2


async def test_a_claim_whose_answer_came_too_late_is_ended_and_given_back(tmp_path: Path) -> None:
    async with front_core(tmp_path) as core:
        agent, approval_id = await held(core)
        core.store.faults["approval_move"] = does_and_says(GONE)
        answer = await core.operate("POST", f"/v1/approvals/{approval_id}/approve")
        assert answer == (503, {"error": "approval_store_unavailable"})
        core.store.faults.clear()
        await core.services.upkeep.round()
        assert await state_of(core, approval_id) == FAILED
        assert await core.remaining(agent) == 3
