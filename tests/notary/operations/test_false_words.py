"""Evidence that no front may write, compromised or not: the notary refuses each item by itself and stores nothing of
it."""

import math
from typing import Any

import pytest

from ipc.backends.store import ApprovalRecord
from ipc.evidence import events
from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_AHEAD
from ipc.operations.calls import Approver, Open, Refuse, Withdraw
from ipc.operations.deliveries import RedeliverDeliveries
from ipc.operations.holds import Hold
from ipc.operations.intents import ResolveIntent, VerifyIntent
from ipc.operations.leases import ReadEpoch, RevokeSession
from ipc.texts.canonical import MAX_SAFE_INTEGER
from ipc.texts.foreign_texts import MAX_REASON
from ipc.texts.identifiers import new
from tests.notary.lost import lost_call
from tests.notary.running import Running
from tests.notary.samples import (
    DIGEST,
    NOW,
    NOW_MS,
    call_event,
    changed,
    held_and_claimed,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_refuse,
    make_revoke,
    outcome_text,
    record_call,
)
from tests.support.asking import Asker

TYPES = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
DECISIONS = ("allow", "deny", "error", "pending_approval", "denied", None)
OF_OPERATIONS = {
    "ActionCall", "ApprovalGiven", "ApprovalGranted", "ApprovalDenied", "ApprovalExpired", "AdminRevokeAll",
    "BudgetRollbackFailed", "KeysRotated", "IntentResolved", "IntentVerification", "RollbackAccepted",
    "WebhooksRedelivered", "SessionRevoked", "ClockAccepted", "LedgerSealed", "EvidenceErased",
    "StandingApprovalAdded", "StandingApprovalRevoked", "StandingApprovalEnded",
}  # fmt: skip
"""Written by an operation of their own, or by the notary itself."""
NOTARYS: dict[str, Any] = {
    "receipt_id": "rcpt_1", "receipt_hash": DIGEST, "grant_id": "grant_1", "intent_id": "intent_1",
    "runtime": {"duration_ms": 1}, "response_hash": DIGEST, "verification_outcome": "verified",
    "response_schema_violation": "/a: type", "is_repeated": True, "lease": {"epoch": 0},
    "key_purpose": "receipt", "key_id": "k",
    "previous_key_id": "k", "seen": {"state": "present"},
    "kept": {"/a": DIGEST}, "summary_template": "{a}", "approvals": (),
    "standing_id": "sta_1", "standing_signature": "a.b.c",
}  # fmt: skip
OF_DECISIONS = ("approval_id", "approved_by", "operator_sender_binding", "operator_proof_jti")


def problem(front: Asker, operation: Any) -> str | None:
    return front.heard(front.send(operation)[0]).problem


def assert_refused(notary: Running, *operations: Any, front: Asker | None = None) -> None:
    """None of them is performed, and nothing is written."""
    before = counted(notary)
    for operation in operations:
        assert problem(front or notary.front, operation) == "refused", operation
    assert counted(notary) == before


def counted(notary: Running) -> list[int]:
    tables = ("events", "intents", "receipts", "proofs", "approvals", "budgets")
    return [len(notary.stored(f"SELECT 1 FROM {table}")) for table in tables]


def test_note_writes_the_acts_of_operators_and_refusals_and_nothing_that_belongs_to_an_operation(
    notary: Running,
) -> None:
    front = notary.front
    expected = {(name, decision) for name in TYPES - OF_OPERATIONS for decision in ("allow", "deny", "error")}
    expected -= {("LeaseIssued", "allow"), ("OperatorAuthFailed", "allow"), ("OperatorAuthFailed", "error")}
    expected |= {("ActionPreviewed", "pending_approval")}
    told = {
        (name, decision): problem(front, make_note(event_type=name, decision=decision))
        for name in (*TYPES, "MadeUp")
        for decision in DECISIONS
    }
    assert {one for one, answer in told.items() if answer is None} == expected
    assert {answer for answer in told.values() if answer} == {"refused"}
    assert {(event["event_type"], event["decision"]) for event in notary.events()} == expected


def test_no_event_of_a_front_says_what_the_notary_says(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    for more in ({field: value} for field, value in NOTARYS.items()):
        assert_refused(
            notary, make_open(event=call_event(**more)), make_refuse(**more), make_note(**more), make_revoke(**more),
            make_issue(event=changed(make_issue().event, **more)), changed(make_hold(), event=call_event(**more)),
            changed(make_claim(approval), event=of_approval(approval, "ApprovalGranted", "allow", **more)),
        )  # fmt: skip


def of_approval(approval: ApprovalRecord, event_type: str, decision: str, **given: Any) -> AuditEvent:
    return call_event(event_type=event_type, decision=decision, approval_id=approval.approval_id, **given)


def test_a_refusal_quotes_a_false_event_in_bounds_and_without_control_characters(notary: Running) -> None:
    answered = notary.front.heard(notary.front.send(make_note(event_type="x\x1b" * 200, decision=None))[0])
    assert answered.cause == f"an event {'x' * 64} with the decision none"


def test_a_call_that_no_operator_has_decided_on_names_none(notary: Running) -> None:
    asked = make_hold()
    for field in OF_DECISIONS:
        named: dict[str, Any] = {field: "x"}
        assert_refused(
            notary, make_open(event=call_event(**named)), make_refuse(**named),
            changed(asked, event=changed(asked.event, **named)),
        )  # fmt: skip


def test_a_signature_stands_in_the_events_of_decisions_alone(notary: Running) -> None:
    signed: dict[str, Any] = {"approval_signature": "a.b.c"}
    assert_refused(notary, make_note(**signed), make_refuse(**signed), make_open(event=call_event(**signed)))


def test_operations_write_their_own_event_with_their_own_decisions(notary: Running) -> None:
    issue, hold = make_issue(), make_hold()
    assert_refused(
        notary,
        *(make_open(event=call_event(decision=decision)) for decision in ("deny", "error", "pending_approval")),
        make_open(event=call_event(event_type="GatewayStarted")),
        *(Refuse(call_event(decision=decision, error_code="x")) for decision in ("allow", "pending_approval", None)),
        make_refuse(event_type="GatewayStarted"),
        *(changed(hold, event=changed(hold.event, decision=decision)) for decision in ("allow", "deny", "error")),
        *(make_issue(event=changed(issue.event, decision=decision)) for decision in ("deny", "error", None)),
        make_issue(event=changed(issue.event, event_type="GatewayStarted")),
        make_issue(event=changed(issue.event, principal="somebody")),
        make_revoke(decision="deny"), make_revoke(event_type="GatewayStarted"),
    )  # fmt: skip
    for decision in ("allow", None):
        notary.front.ask(make_open(event=call_event(decision=decision)))
    for decision in ("pending_approval", None):
        asked = make_hold()
        notary.front.ask(changed(asked, event=changed(asked.event, decision=decision)))


def test_a_refusal_has_a_code_and_no_more_than_that(notary: Running) -> None:
    front = notary.front
    opened = make_open()
    front.begin(opened)
    for code in ("", "x" * 65):
        assert_refused(notary, make_refuse(error_code=code), Withdraw(opened.intent_id, "deny", code))
    assert_refused(notary, make_refuse(error_code=None))
    assert_refused(
        notary, *(Withdraw(opened.intent_id, decision, "overloaded") for decision in ("allow", "pending_approval", ""))
    )
    front.ask(make_refuse(error_code="x" * 64))
    front.ask(make_refuse(error_code="x", decision="error"))
    assert front.ask(Withdraw(opened.intent_id, "deny", "x" * 64, "r\x1b[2J" + "x" * 10_000)).is_abandoned
    event = notary.last_event()
    assert (event["decision"], event["reason"][:4], len(event["reason"])) == ("deny", "r[2J", MAX_REASON)


def test_refusals_that_were_counted_have_a_number_that_can_be_added_up(notary: Running) -> None:
    attempts: list[dict[str, Any]] = [
        {}, {"count": 0}, {"count": 1.5}, {"count": "x"}, {"count": 2**62}, {"count": 1, "has_proven": True},
        {"count": 1, "uid": "x"}, {"count": 1, "more": 1},
    ]  # fmt: skip
    assert_refused(
        notary,
        *(make_refuse(attempts=one) for one in attempts),
        *(make_note(event_type="OperatorAuthFailed", decision="deny", attempts=one) for one in attempts),
    )
    for one in ({"count": 7, "is_many_users": True}, {"count": 7, "uid": 3}, {"count": 7, "operator": "alice"}):
        notary.front.ask(make_refuse(attempts=one))


def test_a_revocation_says_no_more_than_its_event_and_leaves_room_for_the_next_one(notary: Running) -> None:
    assert_refused(
        notary, make_revoke(change={"current_epoch": 9}), make_revoke(MAX_SAFE_INTEGER), make_revoke(2**60),
        make_revoke(why="x" * (MAX_REASON + 1)),
    )  # fmt: skip
    assert notary.front.ask(ReadEpoch()) == 0
    assert notary.front.ask(make_revoke(7, why="x" * MAX_REASON)).current == 8
    assert notary.front.ask(make_revoke(MAX_SAFE_INTEGER - 1)).current == MAX_SAFE_INTEGER


def test_a_call_has_an_id_of_the_notarys_form_and_says_whose_and_what_it_is(notary: Running) -> None:
    digits = new("")
    forms = ("", "intent_", f"intent_{digits}0", f"intent_{digits[1:]}", f"grant_{digits}0", f"intenT_{digits}")
    assert_refused(notary, *(make_open(intent_id=form) for form in forms))
    for field in ("trace_id", "action_id", "principal"):
        assert_refused(notary, make_open(event=call_event(**{field: None})))


def test_a_call_has_a_time_limit_that_a_manifest_may_set(notary: Running) -> None:
    for seconds in (0.0, -1.0, 3600.1, 1e300, math.inf, -math.inf, math.nan):
        assert_refused(notary, make_open(terms={"timeout_seconds": seconds}))
    notary.front.ask(make_open(terms={"timeout_seconds": 3600.0}))


def test_a_worker_gets_calls_of_its_own_front_and_a_bounded_number(notary: Running) -> None:
    other = notary.attach("another")
    theirs, own = notary.workers.start("another"), notary.workers.start("front-1")
    assert_refused(notary, make_open(worker_id=theirs.worker_id))
    calls = [make_open(worker_id=own.worker_id) for _ in range(MAX_AHEAD + 1)]
    for call in calls[:-1]:
        notary.front.begin(call, own)
    assert_refused(notary, calls[-1])
    other.begin(make_open(worker_id=theirs.worker_id), theirs)


def approved_call(approval: ApprovalRecord, by: str = "alice", **given: Any) -> Open:
    return make_open(approver=Approver(approval.approval_id, by, "thumbprint", "jti"), proof=None, **given)


def test_a_call_is_approved_by_the_claim_of_this_front_for_this_plan_and_once(notary: Running) -> None:
    other = notary.attach("another")
    pending = make_approval()
    notary.front.ask(make_hold(pending))
    own, others = held_and_claimed(notary.front), held_and_claimed(other, "another")
    assert_refused(
        notary, approved_call(make_approval()), approved_call(pending), approved_call(others),
        approved_call(own, "bob"), approved_call(own, terms={"plan_hash": "sha256:other"}),
        approved_call(own, event=call_event(decision="deny")),
        approved_call(own, event=call_event(event_type="GatewayStarted")),
    )  # fmt: skip
    notary.front.begin(approved_call(own, event=call_event(decision="allow")))
    assert_refused(notary, approved_call(own))


@pytest.mark.parametrize("body", ["{", "", "[]", "[" * 5000])
def test_an_unreadable_hold_neither_runs_nor_refunds(notary: Running, body: str) -> None:
    own = held_and_claimed(notary.front, has_budget=True)
    notary.execute("UPDATE approvals SET body = ?", body)
    assert_refused(notary, approved_call(own), make_denial(own, refunds=True))
    assert notary.front.ask(make_denial(own)).state == "denied"


def test_a_hold_is_that_of_its_call_and_begins_undecided(notary: Running) -> None:
    asked = make_hold()
    kept = make_approval()
    notary.front.ask(make_hold(kept))

    def spoilt(**changes: Any) -> Hold:
        hold: Hold = changed(asked, approval=changed(asked.approval, **changes))
        return hold

    assert_refused(
        notary, *(spoilt(**{name: "other"}) for name in ("session_id", "action_id", "request_hash", "principal")),
        spoilt(epoch=1), spoilt(body='{"plan":{"principal":"other"}}'), spoilt(state="claimed"),
        spoilt(holder="front-1"), spoilt(outcome='{"receipt_id":"rcpt_1"}'), spoilt(expires_at=NOW + 360.001),
        spoilt(approval_id=kept.approval_id),
        *(spoilt(created_at=time) for time in (-1.0, NOW + 301, 1e300, math.nan, -math.inf)),
        *(spoilt(expires_at=time) for time in (NOW - 1, math.nan, -math.inf)),
        changed(asked, event=changed(asked.event, quorum={"count": 2, "groups": {}})),
    )  # fmt: skip
    notary.front.ask(spoilt(expires_at=NOW + 360))


def test_a_claim_says_who_claimed_for_the_front_that_asks_and_no_more(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    claim = make_claim(approval)
    outcomes = (
        "{}", "nonsense", outcome_text(claimed_by=""), outcome_text(claimed_by="alice", receipt_id="rcpt_1"),
        outcome_text(claimed_by="alice", completed_at="2026-01-01T00:00:00.000Z"),
        outcome_text(claimed_by="alice", deny_reason="no"), outcome_text(claimed_by="alice", error_code="x"),
    )  # fmt: skip
    told = [
        of_approval(approval, "ApprovalGranted", "deny"), of_approval(approval, "ActionCall", "allow"),
        of_approval(make_approval(), "ApprovalGranted", "allow"),
    ]  # fmt: skip
    assert_refused(notary, *(changed(claim, outcome=outcome) for outcome in outcomes))
    assert_refused(
        notary, *(changed(claim, event=one) for one in told),
        changed(claim, holder="another"), changed(claim, holder=None), changed(claim, refunds=True),
        changed(claim, to_state="approved"), changed(claim, from_state="claimed"), changed(claim, to_state="made up"),
    )  # fmt: skip
    claimed = changed(claim, outcome=outcome_text(claimed_by="alice", claimed_at="2026-01-01T00:00:00.000Z"))
    assert notary.front.ask(claimed).state == "claimed"


def test_an_expiry_says_no_more_and_has_its_event(notary: Running) -> None:
    approval = make_approval()
    notary.front.ask(make_hold(approval))
    notary.clock.time = approval.expires_at
    expiry = make_expiry(approval)
    assert_refused(
        notary, changed(expiry, holder="front-1"), changed(expiry, outcome=outcome_text(error_code="x")),
        changed(expiry, event=None), changed(expiry, event=of_approval(approval, "ApprovalExpired", "allow")),
        changed(expiry, event=of_approval(approval, "ApprovalDenied", "deny")),
    )  # fmt: skip
    assert notary.front.ask(expiry).state == "expired"


def test_a_claim_ends_as_what_it_is_and_says_who_claimed_it(notary: Running) -> None:
    front = notary.front
    approval, failing = held_and_claimed(front), held_and_claimed(front)
    denial = make_denial(approval)
    failure = changed(
        make_denial(failing), to_state="failed", outcome=outcome_text(claimed_by="alice", error_code="interrupted"),
        event=of_approval(failing, "ActionCall", "error", error_code="interrupted"),
    )  # fmt: skip
    approved = outcome_text(claimed_by="alice", receipt_id="rcpt_1")
    assert_refused(
        notary, changed(denial, event=None), changed(denial, outcome="{}"),
        changed(denial, outcome=outcome_text(claimed_by="bob")),
        changed(denial, outcome=outcome_text(claimed_by="alice", error_code="x")),
        changed(denial, outcome=outcome_text(claimed_by="alice", deny_reason="x" * (MAX_REASON + 1))),
        changed(denial, outcome=outcome_text(claimed_by="alice", claimed_at="2026-01-01T00:00:00.000Z")),
        changed(denial, holder="front-1"), changed(denial, event=of_approval(approval, "ApprovalGranted", "allow")),
        changed(failure, outcome=outcome_text(claimed_by="alice")),
        changed(failure, outcome=outcome_text(claimed_by="alice", error_code="x" * 65)),
        changed(failure, outcome=outcome_text(claimed_by="alice", error_code="x", deny_reason="no")),
        changed(failure, event=of_approval(failing, "ActionCall", "error")),
        changed(failure, event=of_approval(failing, "ActionCall", "allow", error_code="x")),
        changed(failure, to_state="approved", outcome=approved, event=None),
        changed(failure, to_state="approved", outcome=outcome_text(claimed_by="alice"), event=None),
    )  # fmt: skip
    ends = outcome_text(claimed_by="alice", deny_reason="x" * MAX_REASON, completed_at="2026-01-01T00:00:00.000Z")
    assert front.ask(changed(denial, outcome=ends)).state == "denied"
    assert front.ask(failure).state == "failed"


def test_a_claim_needs_no_event_if_the_calls_end_is_recorded(notary: Running) -> None:
    approval = held_and_claimed(notary.front)
    ends = outcome_text(claimed_by="alice", error_code="interrupted")
    failure = changed(make_denial(approval), to_state="failed", outcome=ends, event=None)
    assert notary.front.ask(failure).state == "failed"


def test_a_claim_of_a_front_that_lives_is_ended_by_that_one(notary: Running) -> None:
    other = notary.attach("another")
    approval = held_and_claimed(other, "another")
    assert_refused(notary, make_denial(approval))
    other.close()
    notary.thread.hears()
    assert notary.front.ask(make_denial(approval)).state == "denied"


def test_a_dispatched_call_is_not_refunded(notary: Running) -> None:
    session_id = notary.front.ask(make_issue(max_calls=2)).session_id
    approval = held_and_claimed(notary.front, session_id=session_id, has_budget=True)
    notary.front.begin(approved_call(approval))
    assert_refused(notary, make_denial(approval, refunds=True))
    record_call(notary.front)


def test_an_act_of_an_operator_says_no_more_than_that(telling: Running) -> None:
    session_id, intent_id = telling.front.ask(make_issue()).session_id, lost_call(telling)
    worker = telling.workers.start(telling.front.front_id)

    def act(kind: str, **given: Any) -> AuditEvent:
        return AuditEvent(
            **{"event_type": kind, "trace_id": "trc_op", "principal": "operator:ops", "decision": "allow"} | given
        )

    more: tuple[dict[str, Any], ...] = ({"decision": "deny"}, {"event_type": "AdminDrain"}, {"change": {"size": 1}})
    another: dict[str, Any] = {"intent_id": "intent_2"}
    revoke = (RevokeSession(session_id, act("SessionRevoked", **one)) for one in (*more, {"session_id": "ses_2"}))
    resolve = (ResolveIntent(intent_id, "happened", act("IntentResolved", **one)) for one in (*more, another))
    verify = (
        VerifyIntent(intent_id, worker.worker_id, act("IntentVerification", **one))
        for one in (*more, another, {"seen": {"state": "matches"}}, {"event_type": "IntentResolved"})
    )
    redeliver = (
        RedeliverDeliveries("chat", None, NOW_MS, act("WebhooksRedelivered", **one))
        for one in (*more, {"reason": "more"})
    )
    assert_refused(telling, *revoke, *resolve, *verify, *redeliver)
    assert_refused(telling, ResolveIntent(intent_id, "perhaps", act("IntentResolved")))
    assert not worker.has_news()
