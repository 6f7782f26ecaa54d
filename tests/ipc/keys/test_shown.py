"""The text that an operator is shown for an approval, and the fields that its hash covers."""

from typing import Any

import msgspec
import pytest
import rfc8785
from msgspec import UNSET, UnsetType

from frontend.calls.approvals.record import detailed
from ipc.approvals import DecisionOutcome, HeldBody, remains_of
from ipc.backends.store import ApprovalRecord
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.evidence.kept_values import KeptRules
from ipc.keys.shown import NOT_HASHED, hash_of, shown
from ipc.plan import seal
from ipc.texts.canonical import sha256_hex
from tests.support.plans import a_plan

NOW = 1_000.0


def a_held(
    request: str = '{"to":"acct"}', description: str | None = None, kept: KeptRules | UnsetType = UNSET, **given: Any
) -> tuple[ApprovalRecord, HeldBody]:  # fmt: skip
    plan = a_plan(request=request, calls_remaining=3, kept=kept)
    body = HeldBody.of(seal(plan), IdentityOrigin("peercred"), has_budget=True, description=description)
    fields: dict[str, Any] = {
        "approval_id": "apr_1", "session_id": plan.session_id, "action_id": plan.action_id,
        "request_hash": plan.request_hash, "state": "pending", "created_at": NOW, "expires_at": NOW + 300,
        "body": msgspec.json.encode(body).decode(),
    }  # fmt: skip
    return ApprovalRecord(**fields | given), body


def sent(record: ApprovalRecord) -> dict[str, Any]:
    """The detail as it goes out."""
    detail: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(detailed(record, NOW)))
    return detail


def test_the_detail_has_the_hash_that_its_receiver_computes() -> None:
    record, _ = a_held('{"amount":1e-7,"n":[1.5,-2,true,null],"to":"a\\u202eb","\\u00e9":"\\ud83d\\ude00"}')
    detail = sent(record)
    canonical = rfc8785.dumps({name: value for name, value in detail.items() if name not in NOT_HASHED})
    assert detail["shown_hash"] == sha256_hex(canonical)


def test_every_member_of_the_detail_is_hashed_or_changes_while_it_is_decided() -> None:
    record, body = a_held()
    assert sent(record).keys() == shown(record, body).keys() | (NOT_HASHED - {"approvals", "caps"})


def test_the_hash_stays_while_a_decision_is_carried_out() -> None:
    record, _ = a_held()
    outcome = DecisionOutcome(
        "ann", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z", "rcpt_1", approval_signature="a.b.c"
    )
    decided = msgspec.structs.replace(record, state="claimed", outcome=msgspec.json.encode(outcome).decode())
    assert sent(decided)["shown_hash"] == sent(record)["shown_hash"]
    assert sent(decided)["approval_signature"] == "a.b.c"


@pytest.mark.parametrize(
    "changes", [{"approval_id": "apr_2"}, {"session_id": "ses_2"}, {"expires_at": NOW + 301}, {"request_hash": "x"}]
)
def test_another_hold_has_another_hash(changes: dict[str, Any]) -> None:
    record, body = a_held()
    assert hash_of(shown(msgspec.structs.replace(record, **changes), body)) != hash_of(shown(record, body))


def test_another_request_has_another_hash() -> None:
    assert len({hash_of(shown(*a_held(text))) for text in ('{"to":"acct"}', '{"to":"acct2"}', "{}")}) == 3


def test_the_description_of_a_hold_is_shown_and_hashed() -> None:
    record, body = a_held(description="Pays.")
    assert (sent(record)["description"], sent(record)["shown_hash"]) == ("Pays.", hash_of(shown(record, body)))
    assert len({hash_of(shown(*a_held(description=text))) for text in ("Pays.", "Reads.", None)}) == 3


def test_a_hold_without_a_description_is_stored_and_hashed_as_by_earlier_versions() -> None:
    record, body = a_held()
    assert msgspec.json.decode(record.body).keys() == {"plan", "plan_hash", "identity_method", "has_budget"}
    assert "description" not in shown(record, body).keys() | sent(record).keys()


def test_the_description_is_kept_when_the_request_is_not() -> None:
    record, _ = a_held(description="Pays.", state="denied")
    ended = sent(msgspec.structs.replace(record, body=remains_of(record.body)))
    assert (ended["request"], ended["description"]) == (None, "Pays.")


def test_the_summary_of_a_hold_follows_from_its_plan_and_is_hashed() -> None:
    record, body = a_held(kept=KeptRules(("/to",), (), "to {to}"))
    detail = sent(record)
    assert (detail["summary"], detail["shown_hash"]) == ("to acct", hash_of(shown(record, body)))
    assert detail.keys() == shown(record, body).keys() | (NOT_HASHED - {"approvals", "caps"})
    ended = sent(msgspec.structs.replace(record, state="denied", body=remains_of(record.body)))
    assert "summary" not in ended


def test_a_number_without_a_canonical_form_leaves_nothing_to_sign() -> None:
    record, _ = a_held('{"n":10000000000000000}')
    assert sent(record)["shown_hash"] is None
