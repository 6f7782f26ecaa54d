"""Bodies of notifications."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.configuration.quorum import MOST_GROUPS
from ipc.evidence.events import AuditEvent
from ipc.settings import WEBHOOK_KINDS
from notary.ledger.message import MAX_BODY_BYTES, body_of

NEVER = {
    "reason", "runtime", "budgets_before", "budgets_after", "lease_jti", "operator_proof_jti",
    "operator_sender_binding", "response_hash", "intent_id", "allowed_sinks", "signing_keys", "key_id",
    "previous_key_id", "key_purpose", "identity_method", "identity_issuer", "identity_subject", "token_binding",
    "key_thumbprint",
    "provider_module_digest", "trust_verdict",
    "sandbox_degraded", "prev_hash", "timestamp", "event_type", "is_repeated", "approval_signature",
    "seen", "attempts", "response_schema_violation", "lease", "egress_networks", "supposed_principal",
    "kept", "caps", "approvals", "quorum", "standing_id", "standing_signature",
}  # fmt: skip
FREE = {
    "allowed_sinks",
    "egress_networks",
    "budgets_before",
    "budgets_after",
    "runtime",
    "change",
    "signing_keys",
    "seen",
    "attempts",
    "lease",
    "kept",
}
FLAGS = {"dev_mode", "is_repeated", "sandbox_degraded"}


def make_event(**changes: Any) -> AuditEvent:
    """An event of a call."""
    fields: dict[str, Any] = {
        "event_id": "evt_1", "event_type": "ActionCall", "timestamp": "2026-01-01T00:00:00.000Z", "trace_id": "trc_1",
        "action_id": "text_digest", "principal": "uid:1000", "session_id": "ses_1", "decision": "allow",
    }  # fmt: skip
    return AuditEvent(**(fields | changes))


def full_event(text: str) -> AuditEvent:
    """An event of which every field is set, texts to `text`."""
    fields: dict[str, Any] = dict.fromkeys(AuditEvent.__struct_fields__, text)
    fields |= {name: {"note": text, "current_epoch": 2} for name in FREE - {"allowed_sinks", "egress_networks", "seen"}}
    fields |= {"allowed_sinks": (text,), "egress_networks": (text,), "seen": {"path": text}}
    fields |= dict.fromkeys(FLAGS, True)
    return AuditEvent(**fields)


def test_a_body_says_who_did_what_and_what_came_of_it_and_nothing_else() -> None:
    event = make_event(event_id="evt_1", trace_id="trc_1", policy_rule="allow", receipt_id="rcpt_1")
    assert json.loads(body_of(event, "action.executed", "0.1.0")) == {
        "id": "evt_1", "type": "action.executed", "timestamp": event.timestamp, "gateway_version": "0.1.0",
        "data": {
            "event_id": "evt_1", "trace_id": "trc_1", "action_id": "text_digest", "principal": "uid:1000",
            "session_id": "ses_1", "decision": "allow", "policy_rule": "allow", "receipt_id": "rcpt_1",
        },
    }  # fmt: skip


def test_a_body_is_compact_with_its_names_in_order() -> None:
    text = body_of(full_event("a b"), "revocation", "0.1.0")
    assert text == json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)


@pytest.mark.parametrize("kind", WEBHOOK_KINDS)
def test_every_field_of_an_event_either_leaves_or_never_does(kind: str) -> None:
    said = set(json.loads(body_of(full_event("x"), kind, "0.1.0"))["data"])
    expected = set(AuditEvent.__struct_fields__) - NEVER - (set() if kind == "revocation" else {"change"})
    assert said == expected


def test_a_body_says_how_many_of_several_approvals_are_given_and_none_of_their_keys() -> None:
    quorum = {"count": 2, "groups": {"finance": 1}}
    waits = make_event(decision="pending_approval", quorum=quorum)
    granted = make_event(quorum=quorum, approvals=[{"approved_by": "ada"}, {"approved_by": "bob"}])
    needed = {"needed": 2, "groups": {"finance": 1}}
    for event, kind, number in ((waits, "approval.pending", 0), (granted, "approval.granted", 2)):
        assert json.loads(body_of(event, kind, "0.1.0"))["data"]["approvals"] == {"given": number, **needed}


@pytest.mark.parametrize(
    "quorum",
    [{}, {"count": "2"}, {"count": 2, "groups": {"x": {}}}, {"count": 9, "groups": dict.fromkeys("123456789", 1)}],
)
def test_a_quorum_that_is_none_is_not_sent(quorum: dict[str, Any]) -> None:
    assert "approvals" not in json.loads(body_of(make_event(quorum=quorum), "approval.pending", "0.1.0"))["data"]


def test_the_longest_names_of_groups_fit_into_a_body() -> None:
    groups = {f"{number}" + "\U0001f4b6" * 4000: 1 for number in range(MOST_GROUPS)}
    event = msgspec.structs.replace(
        full_event("\U0001f4b6" * 9000), event_id="evt_1", timestamp="2026-01-01T00:00:00.000Z",
        quorum={"count": 8, "groups": groups},
    )  # fmt: skip
    assert len(body_of(event, "approval.pending", "0.1.0").encode()) <= MAX_BODY_BYTES


def test_only_the_numbers_of_a_change_are_sent() -> None:
    data = json.loads(body_of(full_event("x"), "revocation", "0.1.0"))["data"]
    assert data["change"] == {"current_epoch": 2}


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4000))
def test_a_body_is_bounded_whatever_its_event_holds(text: str) -> None:
    event = full_event(text * 5)
    body = body_of(AuditEvent(**{**_fields(event), "event_id": "evt_1", "timestamp": "now"}), "revocation", "0.1.0")
    assert len(body.encode()) <= MAX_BODY_BYTES
    assert json.loads(body)["id"] == "evt_1"


def test_a_long_text_is_cut_and_says_so() -> None:
    data = json.loads(body_of(make_event(deny_reason="n" * 600), "action.denied", "0.1.0"))["data"]
    assert data["deny_reason"] == "n" * 500 + "…"
    data = json.loads(body_of(make_event(deny_reason="n" * 500), "action.denied", "0.1.0"))["data"]
    assert data["deny_reason"] == "n" * 500


def _fields(event: AuditEvent) -> dict[str, Any]:
    return {name: getattr(event, name) for name in AuditEvent.__struct_fields__}
