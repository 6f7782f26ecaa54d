"""Intents, receipts, events and deliveries for the tests of evidence, and keys that sign them."""

from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontend.auth.keysets import public_jwk
from frontend.clock import iso
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import Intent, Ledger, OutboxRow
from frontend.evidence.outbox import Delivery
from frontend.evidence.receipts import Receipt, build_receipt
from frontend.evidence.signing import ReceiptSigner
from frontend.identifiers import new

NOW = 1_790_000_000.0
NOW_MS = 1_790_000_000_000
UNTIL = NOW_MS + 10_000
"""When claims of tests end."""
DIGEST = "sha256:" + "d" * 64


def make_signer(seed: int = 1) -> ReceiptSigner:
    """A signer with a key of its own, the same for the same seed."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    return ReceiptSigner(key, {"keys": [public_jwk(key)]})


SIGNER = make_signer()


def make_intent(**given: Any) -> Intent:
    fields = {
        "intent_id": new("intent_"), "trace_id": new("trc_"), "action_id": "text_digest", "principal": "uid:1000",
        "dispatched_at": iso(NOW), "grant_id": new("grant_"), "provider_module": DIGEST, "plan_hash": DIGEST,
    }  # fmt: skip
    return Intent(**fields | given)


def make_receipt(signer: ReceiptSigner = SIGNER, **given: Any) -> Receipt:
    fields = {
        "receipt_id": new("rcpt_"), "grant_id": new("grant_"), "provider_module_digest": DIGEST,
        "provider_receipt": {"bytes": 5, "sha256": "a" * 64},
        "normalized_result": {"kind": "success", "summary": "done"},
        "verification_outcome": {"status": "verified", "evidence": [{"status": 201}]},
        "effect_evidence": [{"status": 201}], "started_at": iso(NOW), "finished_at": iso(NOW + 1),
        "failure_class": None,
    }  # fmt: skip
    return build_receipt(signer, **fields | given)


def make_event(**given: Any) -> AuditEvent:
    fields = {
        "event_id": new("evt_"), "event_type": "ActionCall", "timestamp": iso(NOW), "trace_id": new("trc_"),
        "principal": "uid:1000", "session_id": "ses_1", "action_id": "text_digest", "decision": "allow",
        "allowed_sinks": ("http_read",), "budgets_before": {"calls_remaining": 2},
        "budgets_after": {"calls_remaining": 1},
        "runtime": {"duration_ms": 3, "exit_code": 0, "fuel_consumed": 1234},
    }  # fmt: skip
    return AuditEvent(**fields | given)


async def record_call(
    ledger: Ledger, *, signer: ReceiptSigner = SIGNER, **given: Any
) -> tuple[Intent, Receipt, AuditEvent]:
    """One whole call, as execution leaves it; `given` are fields of the event."""
    intent = make_intent(approval_id=given.get("approval_id"))
    await ledger.begin(intent)
    receipt = make_receipt(signer, grant_id=intent.grant_id)
    event = make_event(
        receipt_id=receipt.receipt_id, intent_id=intent.intent_id, grant_id=intent.grant_id, **given
    )  # fmt: skip
    await ledger.record(receipt=receipt, event=event, intent_id=intent.intent_id)
    return intent, receipt, event


def make_rows(event: AuditEvent, *endpoints: str, payload: str = "{}") -> tuple[OutboxRow, ...]:
    """A delivery of the event for each endpoint."""
    return tuple(OutboxRow(event.event_id, "action.executed", endpoint, payload) for endpoint in endpoints)


async def notify(ledger: Ledger, *endpoints: str, at: float = NOW, payload: str = "{}") -> AuditEvent:
    """Write an event of that time (Unix seconds) with a delivery for each endpoint."""
    event = make_event(timestamp=iso(at))
    await ledger.append(event, make_rows(event, *endpoints, payload=payload))
    return event


async def claim(
    ledger: Ledger, endpoint: str = "chat", *, now: int = NOW_MS, until: int = UNTIL, limit: int = 100
) -> list[Delivery]:
    """What of an endpoint is due; at NOW, if nothing else is said."""
    return await ledger.outbox.claim(endpoint, now=now, until=until, limit=limit)


async def claim_one(ledger: Ledger, *, now: int = NOW_MS, until: int = UNTIL) -> Delivery:
    """The only one that is due."""
    (only,) = await claim(ledger, now=now, until=until)
    return only


def changed(struct: Any, **fields: Any) -> Any:
    """The same struct with other fields."""
    return msgspec.structs.replace(struct, **fields)
