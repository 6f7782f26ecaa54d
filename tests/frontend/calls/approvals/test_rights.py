"""Holds whose principal loses the right to their action, by a revoke or by a reload of the policy's data."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from frontend.calls.approvals.rights import LATE_SECONDS, LostRights
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryUnavailable
from frontend.policy.data import AclEntry, PolicyData
from frontend.policy.question import Decision, Question
from ipc.operations.holds import ListedHolds, ListHolds, VoidHolds
from tests.support.front_core import HOLD, Core, refuses
from tests.support.held_calls import approve, held, state_of, told
from tests.support.policed import DATA, policed

pytestmark = pytest.mark.policed(workers=0)

REVOKE = "/v1/admin/policy/revoke"
ME = "dev:anonymous"
NO_PAY = {"acl": {ME: {"actions": ["echo"]}}}
SHARED = {"acl": {"*": {"actions": ["pay", "echo"]}, "billing": {"actions": ["read"], "inherits_wildcard": True}}}
WENT = ("ApprovalExpired", "deny", None)


async def test_a_revoke_ends_the_holds_of_the_right_alone_each_with_its_event_and_its_call(core: Core) -> None:
    payer, pay = await held(core, action_id="pay")
    _, second = await held(core, action_id="pay")
    _, echo = await held(core, action_id="echo")
    status, _ = await core.operate("POST", REVOKE, {"principal": ME, "actions": ["pay"]})
    assert status == 200
    assert [await state_of(core, one) for one in (pay, second, echo)] == ["expired", "expired", "pending"]
    assert (await told(core, pay))[-1] == (await told(core, second))[-1] == WENT
    (event, *_) = await core.events(event_type="ApprovalExpired")
    assert (event["reason"], event["principal"], event["action_id"]) == ("right_revoked", ME, "pay")
    assert await core.remaining(payer) == 3
    assert await approve(core, pay) == (404, {"error": "approval_not_found"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, NO_PAY),
        ({}, {"acl": {}}),
        ({}, {"denied_actions": {"pay": "not this month"}}),
        (SHARED, {"acl": {"*": {"actions": ["echo"]}}}),
        (SHARED, {"acl": {**SHARED["acl"], ME: {"actions": ["echo"]}}}),
    ],
    ids=["an action", "all entries", "denied to all", "of everybody", "an entry of its own"],
)
async def test_a_reload_that_takes_a_right_away_ends_what_is_held_by_it(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    async with policed(tmp_path, workers=0, data=before) as core:
        _, pay = await held(core, action_id="pay")
        await reload(core, tmp_path, before | {"of_the_author": "something else"})
        await core.services.upkeep.round()
        assert await state_of(core, pay) == "pending"
        await reload(core, tmp_path, before | after)
        await core.services.upkeep.round()
        assert await state_of(core, pay) == "expired"


async def test_a_claim_that_the_notary_could_not_end_ends_in_a_later_round_unapproved(core: Core) -> None:
    _, pay = await held(core, action_id="pay")
    core.client.faults["VoidHolds"] = refuses(NotaryUnavailable("the disk is full"))
    status, _ = await core.operate("POST", REVOKE, {"principal": ME, "actions": ["pay"]})
    assert status == 200
    assert await approve(core, pay) == (503, {"error": "approval_store_unavailable"})
    await core.services.upkeep.round()
    assert await state_of(core, pay) == "pending"
    core.client.faults.clear()
    await core.services.upkeep.round()
    assert await state_of(core, pay) == "expired"


async def test_a_right_that_is_lost_while_an_approval_is_checked_approves_nothing(core: Core) -> None:
    _, approval_id = await held(core)
    lives = core.policy.require_life

    async def loses() -> None:
        await lives()
        before, after = (PolicyData("v", {ME: AclEntry(actions)}) for actions in (("echo",), ()))
        core.services.configuration.rights.note(before, after)

    object.__setattr__(core.policy, "require_life", loses)
    assert await approve(core, approval_id) == (404, {"error": "approval_not_found"})
    await core.services.upkeep.round()
    assert await state_of(core, approval_id) == "expired"
    assert (await told(core, approval_id))[-1] == WENT


async def test_a_call_that_was_decided_before_its_right_was_lost_and_is_held_after_that_is_not_approved(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    decides = core.policy.decide

    async def loses(question: Question) -> Decision:
        decision = await decides(question)
        assert (await core.operate("POST", REVOKE, {"principal": ME, "actions": ["pay"]}))[0] == 200
        await core.services.upkeep.round()
        return decision

    monkeypatch.setattr(core.policy, "decide", loses)
    _, pay = await held(core, action_id="pay")
    assert await approve(core, pay) == (404, {"error": "approval_not_found"})
    await core.services.upkeep.round()
    assert await state_of(core, pay) == "expired"


class Listing:
    """A notary with these holds."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.looks = 0
        self.voided: list[str] = []

    async def ask(self, asked: ListHolds | VoidHolds) -> ListedHolds | None:
        await trio.lowlevel.checkpoint()
        if isinstance(asked, ListHolds):
            self.looks += 1
            return ListedHolds(self.held, len(self.held))
        self.voided += asked.approval_ids
        self.held = []
        return None

    def hold(self, approval_id: str) -> None:
        self.held.append(SimpleNamespace(approval_id=approval_id, principal=ME, action_id="pay"))


async def test_what_comes_to_be_held_late_ends_with_the_last_look_unless_the_right_was_given_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pay, echo = (PolicyData("v1", {ME: AclEntry((action,))}) for action in ("pay", "echo"))
    notary = Listing()
    rights = LostRights(cast(NotaryClient, notary))
    rights.note(pay, echo)
    for _ in range(3):
        await rights.end_due()
    assert notary.looks == 1
    notary.hold("late")
    await rights.end_due()
    assert (notary.looks, notary.voided) == (1, [])
    await trio.sleep(LATE_SECONDS)
    for _ in range(3):
        await rights.end_due()
    assert (notary.looks, notary.voided) == (2, ["late"])
    rights.note(pay, echo)
    await rights.end_due()
    rights.note(echo, pay)
    notary.hold("given back")
    await rights.end()
    await trio.sleep(LATE_SECONDS)
    await rights.end_due()
    assert notary.voided == ["late"]


@pytest.mark.front
async def test_an_approval_costs_no_question_while_no_right_was_revoked(core: Core) -> None:
    _, approval_id = await held(core)
    data = PolicyData("v1", {ME: AclEntry(("echo",))})
    core.services.configuration.rights.note(data, PolicyData("v2", {ME: AclEntry(("echo", "pay"))}))
    assert (await approve(core, approval_id))[0] == 200
    assert not {"ListHolds", "VoidHolds"} & {*core.client.asked}


async def reload(core: Core, folder: Path, data: dict[str, Any]) -> None:
    """The policy's data is edited by hand, and put in force as a reload does it."""
    (folder / "policy" / "data.json").write_text(json.dumps(DATA | data))
    configuration = core.services.configuration
    files = await configuration.policy_file.read()
    await configuration.follow_policy(files.sources.digest)
    core.policy.answer = HOLD


async def test_a_right_that_is_lost_between_the_ends_of_two_rounds_is_not_forgotten() -> None:
    pay, echo = (PolicyData("v1", {ME: AclEntry((action,))}) for action in ("pay", "echo"))
    turns = [trio.Event(), trio.Event(), trio.Event()]
    asked = 0

    class SlowNotary:
        async def ask(self, _: ListHolds) -> ListedHolds:
            nonlocal asked
            asked += 1
            await turns[asked - 1].wait()
            return ListedHolds([], 0)

    rights = LostRights(cast(NotaryClient, SlowNotary()))
    rights.note(pay, echo)
    turns[2].set()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rights.end)
            nursery.start_soon(rights.end)
            await trio.testing.wait_all_tasks_blocked()
            turns[0].set()
            await trio.testing.wait_all_tasks_blocked()
            rights.note(echo, pay)
            turns[1].set()
    assert asked == 3
