"""Rounds that end expired holds: each hold once, and every failure is logged."""

from typing import Any

import pytest
import trio

from frontend.calls.approvals.expiry import AT_ONCE
from frontend.notary.errors import NotaryUnavailable
from tests.support.front_core import Core, refuses
from tests.support.held_calls import corrupt, held, state_of, told
from tests.support.logs import capture_logs

pytestmark = pytest.mark.front(workers=0, lease_ttl_seconds=3600)

COMPLAINT = "holds could not be expired"


async def complaints(core: Core) -> list[dict[str, Any]]:
    with capture_logs() as lines, trio.fail_after(60):
        await core.services.upkeep.round()
    return [one for one in lines if one["event"] == COMPLAINT]


async def test_every_hold_that_is_over_ends_in_one_round_however_many_there_are(core: Core) -> None:
    holds = [(await held(core))[1] for _ in range(AT_ONCE + 2)]
    core.clock.ahead = 301
    assert await complaints(core) == []
    assert [await state_of(core, one) for one in holds] == ["expired"] * len(holds)
    assert core.client.asked.count("MoveHold") == len(holds)
    assert core.services.metrics.approvals.value("expired") == len(holds)


async def test_a_hold_that_can_not_be_ended_is_logged_with_its_cause_and_ends_the_round(core: Core) -> None:
    _, approval_id = await held(core)
    core.clock.ahead = 301
    core.client.faults["MoveHold"] = refuses(NotaryUnavailable("the disk is full"))
    (complaint,) = await complaints(core)
    assert (complaint["code"], complaint["cause"]) == ("approval_store_unavailable", "the disk is full")
    assert core.client.asked.count("MoveHold") == 1
    assert await state_of(core, approval_id) == "pending"


async def test_a_round_ends_though_another_front_has_ended_all_that_was_due(core: Core) -> None:
    await held(core)
    core.clock.ahead = 301

    async def another_was_first(_operation: Any, _args: Any, _kwargs: Any) -> None:
        await trio.lowlevel.checkpoint()

    core.client.faults["MoveHold"] = another_was_first
    with capture_logs() as lines:
        assert await complaints(core) == []
    assert core.client.asked.count("DueHolds") == 1
    assert [one for one in lines if one.get("code") == "approval_expired"] == []


async def test_the_event_of_an_expired_hold_says_why_it_is_over(core: Core) -> None:
    core.clock.stop()
    _, late = await held(core)
    core.clock.ahead = 300  # the very instant
    with capture_logs() as lines:
        await core.services.upkeep.round()
    assert [(one["decision"], one["code"]) for one in lines if "code" in one] == [("deny", "approval_expired")]
    core.clock.ahead = 0
    agent, revoked = await held(core)
    await core.raise_epoch()
    await core.services.upkeep.round()
    reasons = {one["approval_id"]: one["reason"] for one in await core.events(event_type="ApprovalExpired")}
    assert reasons == {late: "five minutes without a decision", revoked: "everything of before was revoked"}
    assert await core.remaining(agent) == 3


async def test_a_hold_that_can_not_be_read_ends_with_what_its_record_says_and_stops_no_other(core: Core) -> None:
    agent, approval_id = await held(core)
    _, whole = await held(core)
    await corrupt(core, approval_id, "{")
    core.clock.ahead = 301
    assert await complaints(core) == []
    for one in (approval_id, whole):
        assert (await told(core, one))[-1] == ("ApprovalExpired", "deny", None)
    (event,) = await core.events(event_type="ApprovalExpired", session_id=agent.session_id)
    assert (event["action_id"], event["session_id"]) == ("echo", agent.session_id)
    assert await core.remaining(agent) == 2, "nothing says that it had a budget"
