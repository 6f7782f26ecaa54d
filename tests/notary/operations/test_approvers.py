"""The operator who approves a held call, as the notary judges a front that says who it was."""

from typing import Any

import msgspec
import pytest

from ipc.approvals import DecisionOutcome, HeldBody
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.configuration.quorum import GivenApproval, Quorum
from ipc.keys.shown import shown_quorum
from ipc.operations.calls import Approver, Open
from ipc.operations.holds import GetHold, MoveHold
from ipc.operations.quorum import GiveApproval
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
    OperatorSettings("eve", dpop_jkt="eve's key", groups=("finance",)),
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


def held(notary: Running, quorum: Quorum | None = None) -> tuple[str, str]:
    """A hold of team-a's call that needs one approval, or a quorum: its id and the hash of its plan."""
    approval = make_approval()
    plan = a_plan(action_id=approval.action_id, principal=approval.principal, owner="team-a", request="{}")
    body = msgspec.structs.replace(HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=False), quorum=quorum)
    asked = make_hold(changed(approval, body=msgspec.json.encode(body).decode()))
    told = None if quorum is None else shown_quorum(quorum)
    notary.front.ask(changed(asked, event=changed(asked.event, quorum=told)))
    return approval.approval_id, body.plan_hash


def claim(approval_id: str, name: str, jkt: str, *, grants: bool) -> MoveHold:
    fields: dict[str, Any] = {
        "event_type": "ApprovalGranted", "decision": "allow", "approval_id": approval_id, "approved_by": name,
        "operator_sender_binding": jkt, "operator_proof_jti": "jti",
    }  # fmt: skip
    outcome = msgspec.json.encode(DecisionOutcome(name)).decode()
    return MoveHold(approval_id, "pending", "claimed", outcome, "front-1", call_event(**fields) if grants else None)


def give(approval_id: str, name: str, jkt: str) -> GiveApproval:
    given = GivenApproval(name, jkt, "jti", "2026-09-21T00:00:00.000Z")
    fields: dict[str, Any] = {
        "event_type": "ApprovalGiven", "decision": "pending_approval", "approval_id": approval_id, "approved_by": name,
        "operator_sender_binding": jkt, "operator_proof_jti": "jti",
    }  # fmt: skip
    return GiveApproval(approval_id, given, call_event(**fields))


def opening(approval_id: str, plan_hash: str, name: str, jkt: str) -> Open:
    return make_open(approver=Approver(approval_id, name, jkt, "jti"), proof=None, terms={"plan_hash": plan_hash})


@pytest.mark.parametrize(("refusal", "who"), NOT_ANYONES.items(), ids=NOT_ANYONES)
def test_an_operator_who_may_not_approve_a_call_neither_grants_a_claim_of_it_nor_opens_it(
    owned: Running, refusal: str, who: tuple[str, str]
) -> None:
    approval_id, plan_hash = held(owned)
    with pytest.raises(Told, match=refusal):
        owned.front.ask(claim(approval_id, *who, grants=True))
    assert owned.front.ask(GetHold(approval_id)).state == "pending"
    owned.front.ask(claim(approval_id, *who, grants=False))
    with pytest.raises(Told, match=refusal):
        owned.front.ask(opening(approval_id, plan_hash, *who))


CHANGED: dict[str, tuple[Quorum, OperatorSettings | None]] = {
    "is gone": (Quorum(2), None),
    "has another key": (Quorum(2), OperatorSettings("eve", dpop_jkt="a new key")),
    "has lost the role": (Quorum(2), OperatorSettings("eve", dpop_jkt="eve's key", roles=("read",))),
    "has left the group": (Quorum(2, {"finance": 1}), OperatorSettings("eve", dpop_jkt="eve's key")),
    "owns the caller": (Quorum(2), OperatorSettings("eve", dpop_jkt="eve's key", owner="team-a")),
}


@pytest.mark.parametrize("changed_to", CHANGED)
def test_a_claimed_call_is_not_opened_once_one_who_approved_it(owned: Running, changed_to: str) -> None:
    quorum, eve = CHANGED[changed_to]
    approval_id, plan_hash = held(owned, quorum)
    owned.front.ask(give(approval_id, "eve", "eve's key"))
    owned.front.ask(claim(approval_id, "bob", "bob's key", grants=True))
    others = tuple(one for one in OPERATORS if one.name != "eve")
    owned.settings = changed(owned.settings, operators=others if eve is None else (*others, eve))
    owned.restart()
    with pytest.raises(Told, match="quorum is not met"):
        owned.attach("front-1").ask(opening(approval_id, plan_hash, "bob", "bob's key"))


def test_a_claimed_call_is_opened_while_all_who_approved_it_may(owned: Running) -> None:
    approval_id, plan_hash = held(owned, Quorum(2, {"finance": 1}))
    owned.front.ask(give(approval_id, "eve", "eve's key"))
    owned.front.ask(claim(approval_id, "bob", "bob's key", grants=True))
    owned.restart()
    owned.attach("front-1").begin(opening(approval_id, plan_hash, "bob", "bob's key"))
