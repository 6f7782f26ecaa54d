"""Which events are notified of, and as what."""

import pytest

from frontend.errors import STATUS
from ipc.settings import WEBHOOK_KINDS
from notary.ledger.notification_kinds import _TABLE, kinds_of
from notary.upkeep import announcing
from tests.notary.samples import make_event

ROWS: list[tuple[str, str | None, str | None, tuple[str, ...]]] = [
    ("ActionCall", "pending_approval", None, ("approval.pending",)),
    ("ApprovalGranted", "allow", None, ("approval.granted",)),
    ("ApprovalDenied", "deny", None, ("approval.denied",)),
    ("ApprovalExpired", "deny", None, ("approval.expired",)),
    ("ActionCall", "allow", None, ("action.executed",)),
    ("ActionCall", "error", "action_execution_failed", ("action.failed",)),
    ("ActionCall", "error", "policy_engine_timeout", ("action.failed",)),
    ("ActionCall", "error", "replay_cache_unavailable", ()),
    ("ActionCall", "error", "budget_store_unavailable", ("action.failed",)),
    ("ActionCall", "deny", "policy_denied", ("action.denied",)),
    ("ActionCall", "deny", "schema_violation", ("action.denied",)),
    ("ActionCall", "deny", None, ("action.denied",)),
    ("ActionCall", "deny", "budget_exhausted", ("budget.exhausted", "action.denied")),
    ("AdminRevokeAll", "allow", None, ("revocation",)),
    ("AdminRevokeAll", "error", "epoch_store_unavailable", ()),
    ("AdminDrain", "allow", None, ("gateway.draining",)),
    ("AdminReload", "allow", None, ()),
    ("LeaseIssued", "allow", None, ()),
    ("LeaseIssued", "deny", "identity_forbidden", ()),
    ("GatewayStarted", "allow", None, ()),
    ("PolicyGranted", "allow", None, ()),
    ("BudgetRollbackFailed", "error", None, ()),
    ("Unheard", None, None, ()),
]


@pytest.mark.parametrize(("event_type", "decision", "code", "kinds"), ROWS)
def test_an_event_is_notified_of_as_the_table_says(
    event_type: str, decision: str | None, code: str | None, kinds: tuple[str, ...]
) -> None:
    assert kinds_of(make_event(event_type=event_type, decision=decision, error_code=code)) == kinds


def test_every_kind_that_can_be_asked_for_comes_of_something_and_no_other_does() -> None:
    assert {kind for kinds in _TABLE.values() for kind in kinds} | {announcing.KIND} == set(WEBHOOK_KINDS)


@pytest.mark.parametrize("code", [code for code, status in STATUS.items() if status == 401])
def test_a_refused_identity_sends_no_notification(code: str) -> None:
    assert kinds_of(make_event(decision="deny", error_code=code)) == ()


def test_a_hold_that_waits_already_is_no_news() -> None:
    assert kinds_of(make_event(decision="pending_approval", is_repeated=True)) == ()
