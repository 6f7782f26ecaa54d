"""What an operator reads is what will run, whatever the agent wrote."""

import msgspec
import pytest

from frontend.calls.approvals.record import body_of, detailed, encode, is_intact, listed, polled
from frontend.errors import GateError
from ipc.approvals import Body, Outcome
from ipc.plan import plan_hash
from ipc.store import ApprovalRecord
from tests.support.plans import a_plan

NOW = 1_000.0


def a_record(state: str = "pending", outcome: Outcome | None = None) -> ApprovalRecord:
    plan = a_plan(request='{"to":"acct"}', calls_remaining=3)
    body = Body(plan, plan_hash(plan), "peercred", True)
    return ApprovalRecord(
        approval_id="apr_1", session_id=plan.session_id, action_id=plan.action_id, request_hash=plan.request_hash,
        state=state, created_at=NOW, expires_at=NOW + 300, body=encode(body), outcome=encode(outcome or Outcome()),
    )  # fmt: skip


def test_a_body_survives_the_store_and_keeps_its_hash() -> None:
    assert is_intact(body_of(a_record()))


def test_a_changed_plan_is_noticed() -> None:
    record = a_record()
    changed = msgspec.structs.replace(record, body=record.body.replace("acct", "acc7"))
    assert not is_intact(body_of(changed))


def test_a_body_that_is_none_is_refused() -> None:
    with pytest.raises(GateError, match="plan_integrity"):
        body_of(msgspec.structs.replace(a_record(), body='{"plan": 1}'))


@pytest.mark.parametrize(
    ("state", "outcome", "shown"),
    [
        ("pending", Outcome(), {"state": "pending", "status": "pending", "retry_after_seconds": 2}),
        ("claimed", Outcome(claimed_by="ann"), {"state": "claimed", "status": "pending", "retry_after_seconds": 1}),
        ("approved", Outcome(receipt_id="rcpt_1"), {"state": "approved", "status": "approved", "receipt_id": "rcpt_1"}),
        ("denied", Outcome(deny_reason="no"), {"state": "denied", "deny_reason": "no", "reason": "no"}),
        ("failed", Outcome(error_code="interrupted"), {"state": "failed", "reason": "interrupted"}),
    ],
)
def test_each_state_is_polled_in_its_own_words(state: str, outcome: Outcome, shown: dict[str, object]) -> None:
    view = msgspec.to_builtins(polled(a_record(state, outcome), NOW))
    assert shown.items() <= view.items()
    assert ("retry_after_seconds" in view) == (state in ("pending", "claimed"))


def test_a_pending_record_whose_time_is_over_is_polled_as_expired() -> None:
    assert polled(a_record(), NOW + 300).state == "expired"


def test_the_list_has_no_request_and_the_detail_all_of_it() -> None:
    assert "request" not in msgspec.to_builtins(listed(a_record(), NOW))
    detail = msgspec.to_builtins(detailed(a_record(), NOW))
    assert detail["request"] == {"to": "acct"}
    assert detail["plan_hash"].startswith("sha256:")
    assert detail["budget_snapshot"] == {"calls_remaining": 3}


def test_the_list_does_not_decode_what_it_does_not_show() -> None:
    record = a_record()
    whole = listed(record, NOW)
    # Only the detail looks at the request: a list of two hundred would otherwise decode them all.
    assert (
        listed(msgspec.structs.replace(record, body=record.body.replace('"request":"', '"request":1,"x":"')), NOW)
        == whole
    )
