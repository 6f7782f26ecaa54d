"""An operator reads exactly the call that will run, for any text of the agent."""

import msgspec
import pytest

from frontend.calls.approvals.record import body_of, call_record_of, detailed, encode, listed, outcome_of, polled
from frontend.errors import GateError
from frontend.telemetry.weakened import Weakened
from ipc.approvals import DecisionOutcome, HeldBody, remains_of
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.plan import FileAccess, seal
from tests.support.plans import a_plan

NOW = 1_000.0


def a_record(state: str = "pending", outcome: DecisionOutcome | None = None) -> ApprovalRecord:
    plan = a_plan(request='{"to":"acct"}', calls_remaining=3)
    body = HeldBody.of(seal(plan), IdentityOrigin("peercred"), has_budget=True)
    return ApprovalRecord(
        approval_id="apr_1",
        session_id=plan.session_id,
        action_id=plan.action_id,
        request_hash=plan.request_hash,
        state=state,
        created_at=NOW,
        expires_at=NOW + 300,
        body=encode(body),
        outcome=encode(outcome or DecisionOutcome()),
    )


def test_a_plan_whose_stored_bytes_changed_is_noticed_though_it_says_the_same() -> None:
    record = a_record()
    changed = body_of(msgspec.structs.replace(record, body=record.body.replace('"plan":{', '"plan":{ ')))
    assert changed.plan == body_of(record).plan
    assert not changed.is_intact


@pytest.mark.parametrize(
    ("state", "outcome", "shown"),
    [
        ("pending", DecisionOutcome(), {"state": "pending", "status": "pending", "retry_after_seconds": 2}),
        (
            "claimed",
            DecisionOutcome(claimed_by="ann"),
            {"state": "claimed", "status": "pending", "retry_after_seconds": 1},
        ),
        (
            "approved",
            DecisionOutcome(receipt_id="rcpt_1"),
            {"state": "approved", "status": "approved", "receipt_id": "rcpt_1"},
        ),
        ("denied", DecisionOutcome(deny_reason="no"), {"state": "denied", "deny_reason": "no", "reason": "no"}),
        (
            "failed",
            DecisionOutcome(error_code="interrupted"),
            {"state": "approved", "outcome": "failed", "status": "failed", "reason": "interrupted"},
        ),
    ],
)
def test_each_state_is_polled_in_its_own_words(state: str, outcome: DecisionOutcome, shown: dict[str, object]) -> None:
    view = msgspec.to_builtins(polled(a_record(state, outcome), NOW))
    assert shown.items() <= view.items()
    assert ("retry_after_seconds" in view) == (state in ("pending", "claimed"))


def test_a_pending_record_whose_time_is_over_is_polled_as_expired() -> None:
    assert polled(a_record(), NOW + 300).state == "expired"


def test_an_agent_is_shown_nothing_that_has_not_come_to_be() -> None:
    assert msgspec.to_builtins(polled(a_record(), NOW)) == {
        "approval_id": "apr_1", "action_id": "a", "state": "pending", "status": "pending", "retry_after_seconds": 2,
    }  # fmt: skip
    approved = a_record("approved", DecisionOutcome(claimed_by="ann", receipt_id="rcpt_1"))
    assert msgspec.to_builtins(polled(approved, NOW)) == {
        "approval_id": "apr_1", "action_id": "a", "state": "approved", "status": "approved", "receipt_id": "rcpt_1",
    }  # fmt: skip
    assert msgspec.to_builtins(polled(a_record("denied"), NOW))["deny_reason"] is None


def test_an_operator_s_list_tells_of_each_approval_what_its_plan_says_and_how_it_stands() -> None:
    record = a_record(
        "claimed", DecisionOutcome(claimed_by="ann", receipt_id="rcpt_1", error_code="action_execution_failed")
    )
    plan = msgspec.structs.replace(body_of(record).plan, owner="team", request_hash=record.request_hash)
    record = msgspec.structs.replace(
        record, body=encode(HeldBody.of(seal(plan), IdentityOrigin("peercred"), has_budget=True))
    )
    assert msgspec.to_builtins(listed(record, NOW)) == {
        "approval_id": "apr_1", "action_id": "a", "action_version": "1.0.0", "state": "claimed", "status": "pending",
        "principal": "p", "session_id": "ses_1", "owner": "team", "risk_level": "low", "request_hash": "sha256:11",
        "created_at": "1970-01-01T00:16:40.000Z", "expires_at": "1970-01-01T00:21:40.000Z",
        "claimed_by": "ann", "receipt_id": "rcpt_1", "deny_reason": None, "error_code": "action_execution_failed",
    }  # fmt: skip
    assert (listed(a_record(), NOW + 299.9).state, listed(a_record(), NOW + 300).state) == ("pending", "expired")


def test_the_detail_tells_how_far_it_has_come_and_of_one_that_has_ended_all_that_is_kept() -> None:
    claimed = detailed(a_record("claimed", DecisionOutcome(claimed_by="ann", claimed_at="now")), NOW)
    assert (claimed.state, claimed.status, claimed.claimed_by, claimed.claimed_at) == (
        "claimed", "pending", "ann", "now",
    )  # fmt: skip
    assert (claimed.request, claimed.shown_hash is None) == ({"to": "acct"}, False)
    for state in ("approved", "denied", "expired", "failed"):
        whole = detailed(a_record(state), NOW)
        assert (whole.state, whole.request, whole.shown_hash) == (state, {"to": "acct"}, claimed.shown_hash)
        record = a_record(state)
        ended = detailed(msgspec.structs.replace(record, body=remains_of(record.body)), NOW)
        assert (ended.state, ended.status) == (state, state)
        assert (ended.request, ended.request_json, ended.approved_request, ended.shown_hash) == (None,) * 4
        assert ended.unresolved_paths == ()
        assert ended.plan_hash == claimed.plan_hash
        spoilt = detailed(msgspec.structs.replace(record, body=record.body.replace("acct", "acc7")), NOW)
        assert (spoilt.request, spoilt.request_json, spoilt.shown_hash) == (None,) * 3
        assert spoilt.plan_hash == claimed.plan_hash


def test_an_ended_approval_keeps_no_path_that_its_request_named() -> None:
    plan = a_plan(targets=("fs:write staff/bob.txt",), files=FileAccess("/var/files", ("write",), ("staff/bob.txt",)))
    body = HeldBody.of(seal(plan), IdentityOrigin("peercred"), has_budget=False)
    record = msgspec.structs.replace(a_record("denied"), body=encode(body))
    assert "staff/bob" in str(detailed(record, NOW).approved_files)
    remains = remains_of(record.body)
    assert "bob" not in remains
    ended = detailed(msgspec.structs.replace(record, body=remains), NOW)
    assert ended.approved_files is not None
    assert ended.approved_files["allowed_operations"] == ("write",)
    assert ended.approved_files["allowed_paths"] == ()


@pytest.mark.parametrize("state", ["pending", "approved"])
def test_an_incomplete_hold_is_not_shown_in_detail(state: str) -> None:
    record = a_record(state)
    for body in ("{", '{"plan": {}}', "[" * 5000):
        with pytest.raises(GateError, match="plan_integrity"):
            detailed(msgspec.structs.replace(record, body=body), NOW)
    changed = msgspec.structs.replace(a_record(), body=record.body.replace("acct", "acc7"))
    with pytest.raises(GateError, match="plan_integrity"):
        detailed(changed, NOW)


def test_an_outcome_that_can_not_be_read_is_empty_and_the_state_rules() -> None:
    for outcome in ("{", "[" * 5000, '{"claimed_by": 1}'):
        record = msgspec.structs.replace(a_record("denied"), outcome=outcome)
        assert outcome_of(record) == DecisionOutcome()
        assert polled(record, NOW).state == "denied"


def test_a_held_call_is_opened_again_with_what_its_plan_says_or_without_it_by_its_id_alone() -> None:
    record = call_record_of(a_record(), Weakened())
    assert (record.trace_id, record.action_id, record.origin) == ("trc_1", "a", IdentityOrigin("peercred"))
    assert record.plan == body_of(a_record()).plan
    unreadable = call_record_of(msgspec.structs.replace(a_record(), body="{"), Weakened())
    assert (unreadable.action_id, unreadable.plan, unreadable.origin) == ("a", None, None)


def test_the_list_does_not_decode_what_it_does_not_show() -> None:
    record = a_record()
    whole = listed(record, NOW)
    # Only the detail looks at the request: a list of two hundred would otherwise decode them all.
    assert (
        listed(msgspec.structs.replace(record, body=record.body.replace('"request":"', '"request":1,"x":"')), NOW)
        == whole
    )


def test_a_list_shows_the_summary_of_a_call_that_has_one() -> None:
    record = a_record()
    body = msgspec.structs.replace(body_of(record), summary="120.00 EUR")
    told = listed(msgspec.structs.replace(record, body=encode(body)), NOW)
    assert msgspec.json.decode(msgspec.json.encode(told))["summary"] == "120.00 EUR"
    assert b"summary" not in msgspec.json.encode(listed(record, NOW))
