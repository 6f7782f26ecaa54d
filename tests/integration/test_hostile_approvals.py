"""A front that was taken over, against a real notary: decisions and events of its own making, over its own channel.

Each is refused, leaves no row and one line in the log, and the chain stays whole. `tests/notary/operations` has the
tables of all that is refused (test_false_words.py, test_signed.py, test_move_hold.py).
"""

from pathlib import Path
from typing import Any

import msgspec

from ipc.approvals import DecisionOutcome, HeldBody
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.evidence.events import AuditEvent
from ipc.keys.shown import hash_of, shown
from ipc.operations.calls import Approver, Refuse
from ipc.operations.evidence import WriteEvent
from ipc.operations.holds import GetHold, HoldInForce, MoveHold
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import Issue, Revoke
from ipc.plan import seal
from ipc.reloadable import reloadable_of
from ipc.settings import ApprovalSettings, OperatorSettings
from tests.support.hostile_front import (
    DIGEST,
    a_claim,
    a_hold,
    an_end,
    an_open,
    assert_refused,
    call_event,
    claimed,
    events,
    granted,
    held,
    left,
    make_proof,
    now_of,
    opened,
    with_budget,
)
from tests.support.plans import a_plan
from tests.support.played_supervisor_of_notary import PlayedFront, PlayedSupervisor, framed, sound_notary
from tests.support.played_workers import sound_result
from tests.support.proofs import Key
from tests.support.signed_approvals import signature_of


def test_no_operation_takes_words_of_the_notary_or_of_nobody(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    approval_id, _ = held(new_front)
    issued = AuditEvent(event_type="LeaseIssued", trace_id="trc_1", principal="p", decision="allow", receipt_id="r")
    assert_refused(
        shared_notary, new_front,
        an_open(event=call_event(receipt_id="r")), a_hold(event=call_event(receipt_id="r")),
        Refuse(call_event(decision="deny", error_code="policy_denied", receipt_id="r"), make_proof()),
        WriteEvent(AuditEvent(event_type="AdminDrain", trace_id="trc_1", decision="allow", receipt_id="r")),
        Issue("p", None, ("tools:call",), None, "jkt", "none", issued),
        Revoke(AuditEvent(event_type="AdminRevokeAll", trace_id="trc_1", decision="allow", receipt_id="r")),
        a_claim(new_front, approval_id, event=granted(approval_id, receipt_id="r")),
        a_claim(new_front, approval_id, outcome='{"claimed_by":"op","more":1}'),
    )  # fmt: skip


def test_what_can_not_be_written_is_refused_alone(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    unwritable = front.staffed(an_open(event=call_event(budgets_before={"n": 2**60})))
    sound = front.staffed(an_open())
    front.sock.sendall(framed(901, unwritable) + framed(902, sound))
    for asked in (unwritable, sound):
        supervisor.workers.of(asked.intent_id).word()
        supervisor.workers.of(asked.intent_id).tell(sound_result(asked.intent_id))
    refused = front.heard(901)  # an intent keeps it; the event that can't be written shows at its end
    assert (refused.problem, refused.is_begun) == ("refused", True)
    assert front.heard(902).problem is None
    assert [view["intent_id"] for view in front.value(ListUnresolved(9))] == [unwritable.intent_id]


STATES = ("pending", "claimed", "approved", "denied", "expired", "failed", "made up")
MOVES = {
    ("pending", "claimed"), ("pending", "expired"), ("claimed", "approved"), ("claimed", "denied"),
    ("claimed", "failed"),
}  # fmt: skip


def test_an_approval_makes_no_move_that_the_table_does_not_have(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    approval_id, session_id = held(new_front)
    for before in STATES:
        for after in STATES:
            if (before, after) not in MOVES:
                assert_refused(shared_notary, new_front, MoveHold(approval_id, before, after, "{}", refunds=True))
    record: ApprovalRecord = new_front.value(GetHold(approval_id), ApprovalRecord)
    assert (record.state, left(new_front, session_id)) == ("pending", 1)


def approver(approval_id: str) -> Approver:
    return Approver(approval_id, "op", "thumbprint", "jti")


def test_an_approval_is_executed_once(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    approval_id, session_id = claimed(new_front)
    asked = opened(new_front, approver=approver(approval_id), has_budget=True)
    assert_refused(shared_notary, new_front, an_open(approver=approver(approval_id)))
    failed = '{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z","error_code":"interrupted"}'
    assert_refused(shared_notary, new_front, an_end(approval_id, "failed", outcome=failed, event=None, refunds=True))
    closed = new_front.end(asked, sound_result())
    record: ApprovalRecord = new_front.value(GetHold(approval_id), ApprovalRecord)
    assert (record.state, msgspec.json.decode(record.outcome)["receipt_id"]) == ("approved", closed.receipt_id)
    assert_refused(shared_notary, new_front, an_open(approver=approver(approval_id)))
    (event,) = events(new_front, trace_id=asked.event.trace_id)
    assert (event["approval_id"], event["approved_by"], event["operator_proof_jti"]) == (approval_id, "op", "jti")
    assert left(new_front, session_id) == 1


def test_a_signature_of_an_operator_that_a_reload_removed_counts_no_more_and_that_of_a_new_one_does(
    tmp_path: Path,
) -> None:
    ann, eve = Key(), Key()
    with sound_notary(
        tmp_path, operators=(operator("ann", ann),), approvals=ApprovalSettings(require_signature=True)
    ) as supervisor:
        front = supervisor.attach("front-1-a")
        detail = shown_hold(front)
        supervisor.follow(
            msgspec.structs.replace(reloadable_of(supervisor.settings), operators=(operator("eve", eve),))
        )
        assert_refused(supervisor, front, signed_claim(front, detail, "ann", ann))
        assert events(front, event_type="ApprovalGranted") == []
        assert front.value(signed_claim(front, detail, "eve", eve), ApprovalRecord).state == "claimed"


def operator(name: str, key: Key) -> OperatorSettings:
    return OperatorSettings(name, dpop_jkt=key.jkt, api_key_sha256="a" * 64)


def shown_hold(front: PlayedFront) -> dict[str, Any]:
    """A hold that waits; what an operator is shown of it, with the hash of that and the notary's time as `now`."""
    session_id, now = with_budget(front, 1), now_of(front)
    asked = a_hold(session_id=session_id)
    plan = a_plan(
        session_id=session_id, action_id="text_digest", request_hash=DIGEST, principal=asked.approval.principal
    )
    body = HeldBody.of(seal(plan), IdentityOrigin("none"), has_budget=True)
    approval = msgspec.structs.replace(
        asked.approval, created_at=now, expires_at=now + 300, body=msgspec.json.encode(body).decode()
    )
    assert front.value(msgspec.structs.replace(asked, approval=approval), HoldInForce)
    members = shown(approval, body)
    return members | {"shown_hash": hash_of(members), "now": int(now)}


def signed_claim(front: PlayedFront, detail: dict[str, Any], by: str, key: Key) -> MoveHold:
    """A claim that lets the call run, under an operator's signature."""
    signature, approval_id = signature_of(key, detail, iat=detail["now"]), detail["approval_id"]
    event = granted(
        approval_id, approved_by=by, operator_sender_binding=key.jkt, operator_proof_jti="jti",
        approval_signature=signature,
    )  # fmt: skip
    outcome = DecisionOutcome(by, "2026-01-01T00:00:00.000Z", approval_signature=signature)
    return a_claim(front, approval_id, event=event, outcome=msgspec.json.encode(outcome).decode())
