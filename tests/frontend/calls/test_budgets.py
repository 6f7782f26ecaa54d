"""The budget of a session: read before a call only where something depends on it, debited as the call opens."""

import pytest
from msgspec import UNSET
from msgspec.structs import force_setattr

from frontend.auth.lease import Lease
from frontend.calls.budgets import MAX_SPENT, BudgetCheck
from frontend.policy.question import Decision
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.operations.holds import ListHolds
from tests.support.front_core import ALLOW, DENY, HOLD, Core, then

EXHAUSTED = (403, {"error": "budget_exhausted"})


def asked(core: Core) -> list[str]:
    """Operations since the last look, without those of the pulses, which ask once a second."""
    found = [one for one in core.client.asked if one not in ("ReadStore", "ReadLedger")]
    core.client.asked.clear()
    return found


async def test_a_policy_that_reads_the_budget_is_told_it_and_is_asked_once(core: Core) -> None:
    agent = await core.agent(max_calls=3)
    core.policy.reads_budget = True
    asked(core)
    assert (await agent.call())[0] == 200
    assert asked(core) == ["ReadBudget", "Open"]
    assert [one.calls_remaining for one in core.policy.questions] == [3]


async def test_a_policy_is_told_that_a_lease_has_no_budget(core: Core) -> None:
    core.policy.reads_budget = True
    assert (await (await core.agent()).call())[0] == 200
    assert (await (await core.agent(max_calls=1)).call())[0] == 200
    core.policy.reads_budget = False
    assert (await (await core.agent(max_calls=1)).call())[0] == 200
    assert [one.calls_remaining for one in core.policy.questions] == [None, 1, UNSET]


@pytest.mark.parametrize("answer", [DENY, HOLD])
async def test_the_event_of_a_denial_and_the_operator_of_a_hold_are_told_the_budget(
    core: Core, answer: Decision
) -> None:
    agent = await core.agent(max_calls=3)
    core.policy.answer = answer
    await agent.call()
    (event,) = await core.events(event_type="ActionCall")
    assert event["budgets_before"] == {"calls_remaining": 3}
    for one in (await core.real.ask(ListHolds(("pending",), 10))).approvals:
        _, detail = await core.operate("GET", f"/v1/approvals/{one.approval_id}")
        assert detail["budget_snapshot"] == {"calls_remaining": 3}


async def test_a_call_that_was_held_with_the_last_of_the_budget_has_its_hold_though_policy_would_allow_it_now(
    core: Core,
) -> None:
    agent = await core.agent(max_calls=1)
    core.policy.answer = HOLD
    status, held = await agent.call()
    core.policy.answer = ALLOW
    for operations in (["Open"], ["ReadBudget", "Refuse"]):
        asked(core)
        again = await agent.call()
        assert (again[0], again[1]["approval_id"]) == (status, held["approval_id"])
        assert asked(core) == operations
    events = await core.events(event_type="ActionCall")
    assert [(one["decision"], one.get("is_repeated")) for one in events] == [
        ("pending_approval", True), ("pending_approval", True), ("pending_approval", None),
    ]  # fmt: skip


async def test_a_spent_session_takes_no_worker_again_until_a_call_is_given_back(core: Core) -> None:
    agent = await core.agent(max_calls=1)
    core.policy.answer = HOLD
    _, held = await agent.call()
    core.policy.answer = ALLOW
    asked(core)
    assert await agent.call(body={"n": 2}) == EXHAUSTED
    assert asked(core) == ["Open"]
    assert await agent.call(body={"n": 2}) == EXHAUSTED
    assert asked(core) == ["ReadBudget", "Refuse"]
    events = await core.events(event_type="ActionCall", decision="deny")
    assert [one["budgets_before"] for one in events] == [{"calls_remaining": 0}] * 2
    assert (await core.operate("POST", f"/v1/approvals/{held['approval_id']}/deny"))[0] == 200
    assert (await agent.call(body={"n": 2}))[0] == 200


def test_the_sessions_that_are_remembered_as_spent_are_bounded() -> None:
    budgets = BudgetCheck(None)  # type: ignore[arg-type]  # nothing is asked
    for number in range(MAX_SPENT + 1):
        budgets.note_spent(f"ses_{number}")
    forgotten, remembered = (
        Lease(
            session_id=session_id,
            principal="p",
            owner=None,
            scopes=(),
            jti="lea_1",
            jkt="jkt",
            epoch=0,
            exp=1,
            has_budget=True,
            origin=IdentityOrigin("peercred"),
        )
        for session_id in ("ses_0", "ses_1")
    )
    assert (budgets.is_unread(forgotten), budgets.is_unread(remembered)) == (True, False)


@pytest.mark.parametrize("reads_budget", [True, False])
async def test_a_right_that_is_revoked_while_the_budget_is_read_allows_and_holds_nothing(
    core: Core, reads_budget: bool
) -> None:
    agent = await core.agent(max_calls=3)
    core.policy.reads_budget = reads_budget
    core.policy.answer = ALLOW if reads_budget else HOLD
    revoked: list[bool] = []

    async def use_newest() -> None:
        if revoked:
            core.policy.answer = DENY

    force_setattr(core.services.pipeline.deciding, "use_newest_policy", use_newest)
    core.client.faults["ReadBudget"] = then(lambda: revoked.append(True))
    assert (await agent.call())[0] == 403
    assert not (await core.real.ask(ListHolds(("pending",), 10))).approvals
