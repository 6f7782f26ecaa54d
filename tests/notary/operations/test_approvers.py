"""The operator who approves a held call, as the notary judges a front that says who it was."""

from typing import Any

import msgspec
import pytest

from ipc.approvals import DecisionOutcome, HeldBody
from ipc.identity_origin import IdentityOrigin
from ipc.operations.calls import Approver, Open
from ipc.operations.holds import GetHold, MoveHold
from ipc.plan import seal
from ipc.settings import OperatorSettings
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import call_event, changed, make_approval, make_hold, make_open
from tests.support.asking import Told
from tests.support.plans import a_plan

OPERATORS = (
    OperatorSettings("ann", dpop_jkt="ann's key", owner="team-a"),
    OperatorSettings("bob", dpop_jkt="bob's key", owner="team-b"),
    OperatorSettings("rea", dpop_jkt="rea's key", roles=("read",)),
)
NOT_ANYONES = {
    "an operator's approval of a call of their own": ("ann", "ann's key"),
    "an approval by an operator who may not approve": ("rea", "rea's key"),
    "an approval by another key than the operator's": ("bob", "ann's key"),
}


@pytest.fixture
def owned(start_notary: StartNotary) -> Running:
    """A notary whose operators have owners and roles."""
    return start_notary("owned", operators=OPERATORS)


def held(notary: Running) -> tuple[str, str]:
    """A hold of team-a's call that needs one approval: its id and the hash of its plan."""
    approval = make_approval()
    plan = a_plan(action_id=approval.action_id, principal=approval.principal, owner="team-a", request="{}")
    body = HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=False)
    notary.front.ask(make_hold(changed(approval, body=msgspec.json.encode(body).decode())))
    return approval.approval_id, body.plan_hash


def claim(approval_id: str, name: str, jkt: str, *, grants: bool) -> MoveHold:
    fields: dict[str, Any] = {
        "event_type": "ApprovalGranted", "decision": "allow", "approval_id": approval_id, "approved_by": name,
        "operator_sender_binding": jkt, "operator_proof_jti": "jti",
    }  # fmt: skip
    outcome = msgspec.json.encode(DecisionOutcome(name)).decode()
    return MoveHold(approval_id, "pending", "claimed", outcome, "front-1", call_event(**fields) if grants else None)


def opening(approval_id: str, plan_hash: str, name: str, jkt: str) -> Open:
    return make_open(approver=Approver(approval_id, name, jkt, "jti"), proof=None, terms={"plan_hash": plan_hash})


@pytest.mark.parametrize(("refusal", "who"), NOT_ANYONES.items(), ids=NOT_ANYONES)
def test_an_operator_who_may_not_approve_a_call_grants_no_claim_of_it(
    owned: Running, refusal: str, who: tuple[str, str]
) -> None:
    approval_id, _ = held(owned)
    with pytest.raises(Told, match=refusal):
        owned.front.ask(claim(approval_id, *who, grants=True))
    assert owned.front.ask(GetHold(approval_id)).state == "pending"
    assert owned.front.ask(claim(approval_id, "bob", "bob's key", grants=True)) is not None


@pytest.mark.parametrize(("refusal", "who"), NOT_ANYONES.items(), ids=NOT_ANYONES)
def test_an_operator_who_may_not_approve_a_call_does_not_open_it_by_a_claim_that_grants_nothing(
    owned: Running, refusal: str, who: tuple[str, str]
) -> None:
    approval_id, plan_hash = held(owned)
    owned.front.ask(claim(approval_id, *who, grants=False))
    with pytest.raises(Told, match=refusal):
        owned.front.ask(opening(approval_id, plan_hash, *who))


def test_another_operator_opens_the_call_that_its_owner_may_not_approve(owned: Running) -> None:
    approval_id, plan_hash = held(owned)
    owned.front.ask(claim(approval_id, "bob", "bob's key", grants=True))
    owned.front.begin(opening(approval_id, plan_hash, "bob", "bob's key"))
