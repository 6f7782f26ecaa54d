"""A front that was taken over, against a real notary: events in words that are not a front's, or not that operation's.

Each is refused, leaves no row and one line in the log, and the chain stays whole.
"""

from typing import Any

import msgspec
import pytest

from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Refuse
from ipc.operations.evidence import WriteEvent
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import Issue, ReadEpoch, Revoke
from tests.support.hostile_front import (
    DIGEST,
    a_claim,
    a_hold,
    an_open,
    assert_refused,
    call_event,
    granted,
    held,
    make_proof,
)
from tests.support.played_supervisor_of_notary import (
    PlayedFront,
    PlayedSupervisor,
    framed,
)
from tests.support.played_workers import sound_result

# ------------------------------------------------------------------ words that are not the front's


NOTARYS: dict[str, dict[str, Any]] = {
    "a receipt": {"receipt_id": "rcpt_1"},
    "a grant": {"grant_id": "grant_1"},
    "an intent": {"intent_id": "intent_1"},
    "a run": {"runtime": {"duration_ms": 1}},
    "a response": {"response_hash": DIGEST},
    "a verification": {"verification_outcome": "verified"},
    "a repetition": {"is_repeated": True},
    "a key": {"key_id": "k", "key_purpose": "receipt"},
}


@pytest.mark.parametrize("name", NOTARYS)
def test_no_operation_takes_an_event_with_words_of_the_notary(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, name: str
) -> None:
    more = NOTARYS[name]
    approval_id, _ = held(new_front)
    issued = AuditEvent(event_type="LeaseIssued", trace_id="trc_1", principal="p", decision="allow", **more)
    assert_refused(
        shared_notary, new_front,
        an_open(event=call_event(**more)),
        Refuse(call_event(decision="deny", error_code="policy_denied", **more), make_proof()),
        a_hold(event=call_event(**more)),
        WriteEvent(AuditEvent(event_type="AdminDrain", trace_id="trc_1", decision="allow", **more)),
        Issue("p", None, ("tools:call",), None, "jkt", "none", issued),
        Revoke(AuditEvent(event_type="AdminRevokeAll", trace_id="trc_1", decision="allow", **more)),
        a_claim(new_front, approval_id, event=granted(approval_id, **more)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event_type", "decision"),
    [
        ("ActionCall", "allow"), ("ActionCall", "deny"), ("ActionCall", "pending_approval"), ("KeysRotated", "allow"),
        ("LeaseIssued", "allow"), ("AdminRevokeAll", "allow"), ("AdminRevokeAll", "error"),
        ("ApprovalGranted", "allow"), ("ApprovalDenied", "deny"), ("ApprovalExpired", "deny"),
        ("BudgetRollbackFailed", "error"), ("Made up", "allow"), ("AdminDrain", "pending_approval"),
        ("AdminDrain", "made up"),
    ],
)  # fmt: skip
def test_note_writes_no_event_that_belongs_to_another_operation(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, event_type: str, decision: str
) -> None:
    assert_refused(
        shared_notary, new_front, WriteEvent(AuditEvent(event_type=event_type, trace_id="trc_1", decision=decision))
    )


@pytest.mark.parametrize(
    "event",
    [
        call_event(decision="allow", error_code="x"), call_event(decision="pending_approval", error_code="x"),
        call_event(decision="deny"), call_event(error_code="x"),
        call_event(decision="deny", error_code="x", approval_id="apr_1"),
        call_event(decision="deny", error_code="x", approved_by="op"),
        call_event(decision="deny", error_code="x", event_type="AdminDrain"),
    ],
)  # fmt: skip
def test_refuse_writes_refused_calls_and_nothing_else(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, event: AuditEvent
) -> None:
    assert_refused(
        shared_notary,
        new_front,
        Refuse(event, make_proof()),
        Refuse(event, unless_held=True),
    )


def test_other_events_than_their_own_are_taken_by_no_operation(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    drain = AuditEvent(event_type="AdminDrain", trace_id="trc_1", principal="p", decision="allow")
    lease = AuditEvent(event_type="LeaseIssued", trace_id="trc_1", principal="somebody", decision="allow")
    revoke = AuditEvent(event_type="AdminRevokeAll", trace_id="trc_1", decision="allow")
    assert_refused(
        shared_notary, new_front,
        an_open(event=drain), an_open(event=call_event(decision="deny")), an_open(event=call_event(approved_by="op")),
        a_hold(event=drain),
        Issue("p", None, ("tools:call",), None, "jkt", "none", drain),
        Issue("p", None, ("tools:call",), None, "jkt", "none", lease),
        Revoke(drain), Revoke(msgspec.structs.replace(revoke, change={"current_epoch": 9})),
        Revoke(revoke, above=2**60), Revoke(revoke, why="x" * 10_000),
    )  # fmt: skip
    assert new_front.value(ReadEpoch(), int) == 0


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
