"""Audit events and their bytes."""

import json
import re
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ipc.evidence import events
from ipc.evidence.events import AuditEvent
from ipc.process.clock import iso
from ipc.texts.canonical import NotCanonical, sha256_hex
from notary.ledger.chain import event_hash, milliseconds, open_event
from tests.ipc.texts.test_canonical import TEXTS, VALUES
from tests.notary.samples import make_event

DOCUMENTED = [
    "event_type", "event_id", "timestamp", "trace_id", "principal", "owner", "session_id", "lease_jti",
    "identity_method", "identity_issuer", "identity_subject", "token_binding", "key_thumbprint", "lease",
    "action_id", "action_version", "provider_module_digest", "trust_verdict", "risk_level",
    "request_hash", "kept", "summary_template", "policy_version", "policy_rule", "decision", "deny_reason", "reason",
    "error_code", "failure", "may_have_run", "allowed_sinks",
    "egress_networks", "budgets_before", "budgets_after", "caps", "runtime", "response_hash",
    "response_schema_violation", "grant_id", "receipt_id", "receipt_hash",
    "intent_id", "verification_outcome", "approval_id", "is_repeated", "approved_by", "operator_sender_binding",
    "operator_proof_jti", "approval_signature", "quorum", "approvals", "standing_id", "standing_signature",
    "change", "seen", "attempts",
    "supposed_principal", "key_purpose", "key_id", "previous_key_id", "signing_keys", "dev_mode", "sandbox_degraded",
    "prev_hash",
]  # fmt: skip
DOCUMENTED_TYPES = {
    "ActionCall", "LeaseIssued", "ApprovalGranted", "ApprovalDenied", "ApprovalExpired", "AdminDrain", "AdminReload",
    "AdminRevokeAll", "ReceiptKeysRead", "DomainAdded", "DomainRemoved", "DomainCleared", "PathAdded", "PathRemoved",
    "PathCleared", "PolicyGranted", "PolicyRevoked", "PolicyAllowlistAdded", "PolicyAllowlistRemoved",
    "PolicyThresholdSet", "PolicyThresholdCleared", "PolicyCapSet", "PolicyCapCleared",
    "BudgetRollbackFailed", "KeysRotated", "RollbackAccepted", "IntentResolved", "OperatorAuthFailed",
    "IntentVerification", "GatewayStarted", "GatewayStopped", "WebhookTested", "WebhooksRedelivered", "SessionRevoked",
    "ClockAccepted", "LedgerSealed", "ActionPreviewed", "ActionRolledBack", "EvidenceErased", "ApprovalGiven",
    "StandingApprovalAdded", "StandingApprovalRevoked", "StandingApprovalEnded",
}  # fmt: skip
NO_TEXTS = {
    "timestamp", "lease", "allowed_sinks", "egress_networks", "budgets_before", "budgets_after", "runtime", "change",
    "seen", "attempts", "signing_keys", "is_repeated", "kept", "quorum", "approvals", "dev_mode", "sandbox_degraded",
    "prev_hash",
}  # fmt: skip
TEXT_FIELDS = [name for name in DOCUMENTED if name not in NO_TEXTS]
FREE = st.none() | st.dictionaries(TEXTS, VALUES, max_size=3)
EVENTS = st.builds(
    lambda texts, sinks, frees, flags: make_event(**texts, allowed_sinks=sinks, **frees, **flags),
    st.fixed_dictionaries({}, optional=dict.fromkeys(TEXT_FIELDS, TEXTS) | {"event_id": TEXTS.filter(bool)}),
    st.none() | st.lists(TEXTS, max_size=3).map(tuple),
    st.fixed_dictionaries({"runtime": FREE, "budgets_before": FREE, "budgets_after": FREE, "kept": FREE}),
    st.fixed_dictionaries({}, optional={"dev_mode": st.booleans(), "sandbox_degraded": st.booleans()}),
)


def test_every_documented_field_is_there_and_no_other() -> None:
    assert list(AuditEvent.__struct_fields__) == DOCUMENTED


@given(EVENTS, st.none() | st.just(sha256_hex(b"x")))
def test_stored_bytes_are_canonical_whatever_the_event_holds(event: AuditEvent, link: str | None) -> None:
    wanted = {name: getattr(event, name) for name in DOCUMENTED if getattr(event, name) is not None}
    wanted["prev_hash"] = link
    try:
        stored = open_event(event).closed(link)
    except NotCanonical:
        # A float in a free field that a reader would take for too large an integer.
        assert re.search(rb"\d{16}", rfc8785.dumps(wanted))
        return
    assert stored == rfc8785.dumps(wanted)


@pytest.mark.parametrize("text", ['"prev_hash":null', 'x","prev_hash":null,"y":"', '\\"prev_hash\\":null'])
def test_no_text_can_take_the_place_of_the_link(text: str) -> None:
    link = event_hash(b"before")
    stored = open_event(make_event(reason=text, deny_reason=text, runtime={"note": text})).closed(link)
    decoded = json.loads(stored)
    assert (decoded["prev_hash"], decoded["reason"], decoded["runtime"]) == (link, text, {"note": text})


def test_a_second_link_inside_the_event_is_refused() -> None:
    with pytest.raises(NotCanonical):
        open_event(make_event(runtime={"prev_hash": None}))


@pytest.mark.parametrize("fields", [{"reason": "\ud800"}, {"runtime": {"a": float("nan")}}, {"runtime": {"a": 2**60}}])
def test_an_event_without_canonical_form_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(NotCanonical):
        open_event(make_event(**fields))


def test_a_caller_cannot_set_the_link() -> None:
    stored = open_event(make_event(prev_hash="sha256:forged")).closed(None)
    assert b"forged" not in stored


def test_an_event_can_be_read_back() -> None:
    event = make_event(reason="é")
    again = msgspec.json.decode(open_event(event).closed("sha256:x"), type=AuditEvent)
    assert again == msgspec.structs.replace(event, prev_hash="sha256:x")


@given(st.integers(0, 4_000_000_000_000))
def test_times_are_kept_to_the_millisecond(moment: int) -> None:
    assert milliseconds(iso(moment / 1000)) == moment


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-11-21T11:12:13Z", "2026-11-21T11:12:13.12Z", "2026-11-21T11:12:13.1234Z", "2026-11-21 11:12:13,123Z",
        "2026-11-21T11:12:13.123+", "2026-13-21T11:12:13.123Z", "2026-11-21T25:12:13.123Z",
        "2026-11-21T11:12:13.1000Z", "2026-11-21T11:12:13,123Z", "2026-11-21T11:12:1.1123Z",
        "2026-11-21T11:12:13.1\u0662\u0663Z",
    ],
)  # fmt: skip
def test_times_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every message is fine, no message may be missing
        milliseconds(text)


def test_every_documented_type_has_its_name() -> None:
    names = {value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)}
    assert names == DOCUMENTED_TYPES
