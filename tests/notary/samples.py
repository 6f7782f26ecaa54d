"""Operations, events and receipts for the tests of the notary, and keys that sign them."""

import itertools
from math import inf
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.approvals import DecisionOutcome
from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import AuditEvent
from ipc.evidence.records import Delivery
from ipc.messages.calling import Result, Verification
from ipc.operations.calls import Approver, Closed, GrantTerms, Open, ProofRecord, Refuse
from ipc.operations.deliveries import ClaimDeliveries, SettleDelivery
from ipc.operations.evidence import WriteEvent
from ipc.operations.holds import Hold, MoveHold
from ipc.operations.intents import ResolveIntent
from ipc.operations.leases import Issue, Revoke, RevokeSession
from ipc.process.clock import iso
from ipc.settings import WebhookSettings
from ipc.texts.identifiers import new
from notary.ledger.receipts import Attested, LedgerReceipt, build_receipt
from notary.signing.keys import HeldKey
from notary.signing.keysets import ListedKey, public_jwk
from notary.signing.receipt_keys import ReceiptSigner
from tests.support.asking import Asker

NOW = 1_790_000_000.0
NOW_MS = 1_790_000_000_000
UNTIL = NOW_MS + 10_000
"""When claims of tests end."""
DIGEST = "sha256:" + "d" * 64
_numbers = itertools.count(1)


def make_held(seed: int = 1) -> HeldKey[Ed25519PrivateKey]:
    """A receipt key of one's own, the same for the same seed."""
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    jwk = public_jwk(key)
    return HeldKey(key, jwk["kid"], (ListedKey(jwk),))


def make_signer(seed: int = 1) -> ReceiptSigner:
    """The signer that uses this key."""
    return ReceiptSigner(make_held(seed))


ERASED = AuditEvent(event_type="EvidenceErased", principal="operator:dev", decision="allow", reason="asked for")
"""An operator erases values."""
SIGNER = make_signer()
JWKS = make_held().jwks()


ATTESTED = Attested(
    principal="uid:1000", action_id="text_digest", action_version="1.0.0", request_hash=DIGEST, plan_hash=DIGEST,
    trace_id="trc_1", epoch=1, policy_rule="allow", policy_version="1", approval=None, egress_networks=("core",),
)  # fmt: skip


def make_receipt(signer: ReceiptSigner = SIGNER, **given: Any) -> LedgerReceipt:
    fields = {
        "receipt_id": new("rcpt_"), "grant_id": new("grant_"), "provider_module_digest": DIGEST,
        "provider_receipt": {"bytes": 5, "sha256": "a" * 64},
        "normalized_result": {"kind": "success", "summary": "done"},
        "verification_outcome": {"status": "verified", "evidence": [{"status": 201}]},
        "effect_evidence": [{"status": 201}], "started_at": iso(NOW), "finished_at": iso(NOW + 1),
        "failure_class": None,
    }  # fmt: skip
    attested = given.pop("attested", ATTESTED)
    return build_receipt(signer, attested, **fields | given)


def call_event(**given: Any) -> AuditEvent:
    """The event of a call as a front knows it; its identifier and its time are the notary's."""
    fields = {
        "event_type": "ActionCall", "trace_id": new("trc_"), "principal": "uid:1000", "session_id": "ses_1",
        "action_id": "text_digest", "action_version": "1.0.0", "provider_module_digest": DIGEST,
        "request_hash": DIGEST,
    }  # fmt: skip
    return AuditEvent(**fields | given)


def own_event(**given: Any) -> AuditEvent:
    """An event that a front may have written as it is, with as many fields as that of a call."""
    return call_event(**{"event_type": "GatewayStarted", "decision": "allow"} | given)


def make_note(**given: Any) -> WriteEvent:
    """`given` are fields of its event."""
    return WriteEvent(own_event(**given))


def make_refuse(proof: ProofRecord | None = None, *, unless_held: bool = False, **given: Any) -> Refuse:
    """Write a denied call, which is delivered to the endpoints; `given` are fields of its event."""
    event = call_event(**{"decision": "deny", "error_code": "policy_denied"} | given)
    return Refuse(event, proof, unless_held)


def make_revoke(above: int = 0, why: str = "", **given: Any) -> Revoke:
    """`given` are fields of its event."""
    event = AuditEvent(event_type="AdminRevokeAll", trace_id=new("trc_"), principal="operator", decision="allow")
    return Revoke(changed(event, **given), above, why)


def make_revocation(session_id: str, **given: Any) -> RevokeSession:
    """The end of a session by an operator; `given` are fields of its event."""
    event = AuditEvent(event_type="SessionRevoked", trace_id=new("trc_"), principal="operator:o", decision="allow")
    return RevokeSession(session_id, changed(event, **given))


def make_resolution(intent_id: str, outcome: str = "happened", **given: Any) -> ResolveIntent:
    """How an operator says that a call without a receipt has ended; `given` are fields of its event."""
    event = AuditEvent(event_type="IntentResolved", trace_id="trc_op", principal="operator:ops", decision="allow")
    return ResolveIntent(intent_id, outcome, changed(event, **given))


def make_event(**given: Any) -> AuditEvent:
    """An event as it is written."""
    fields: dict[str, Any] = {
        "event_id": new("evt_"), "event_type": "ActionCall", "timestamp": iso(NOW), "trace_id": new("trc_"),
        "principal": "uid:1000", "session_id": "ses_1", "action_id": "text_digest",
        "decision": "allow", "allowed_sinks": ("http_read",),
        "budgets_before": {"calls_remaining": 2}, "budgets_after": {"calls_remaining": 1},
        "runtime": {"duration_ms": 3, "exit_code": 0, "fuel_consumed": 1234},
    }  # fmt: skip
    return AuditEvent(**fields | given)


def make_terms(**given: Any) -> GrantTerms:
    fields: dict[str, Any] = {
        "plan_hash": DIGEST, "module_digest": DIGEST, "epoch": 0, "verifier_kind": "http_status",
        "max_response_bytes": 100_000, "fuel": 1_000_000, "memory_mb": 64, "timeout_seconds": 30.0, "max_io_calls": 8,
    }  # fmt: skip
    return GrantTerms(**fields | given)


def make_result(outcome: str = "success", **given: Any) -> Result:
    fields: dict[str, Any] = {
        "call_id": "c", "outcome": outcome, "output": '{"a":1}' if outcome == "success" else None, "failure": None,
        "verification": Verification("verified", evidence=('{"status":201}',)), "observations": (),
        "fuel_consumed": 1234, "duration_us": 3000, "io_calls": 1,
    }  # fmt: skip
    return Result(**fields | given)


def fresh_proof() -> ProofRecord:
    """A proof that was never used, and that is young wherever the test sets its clock."""
    return ProofRecord(f"fresh-{next(_numbers)}", inf)


def make_open(*, epoch: int = 0, terms: dict[str, Any] | None = None, **given: Any) -> Open:
    """An Open of a call; `given` are its fields, `event` among them. Without a worker it gets one from its front."""
    fields: dict[str, Any] = {
        "intent_id": new("intent_"), "event": call_event(), "terms": make_terms(epoch=epoch, **(terms or {})),
        "worker_id": "", "proof": fresh_proof(),
    }  # fmt: skip
    return Open(**fields | given)


def by_alice(approval: ApprovalRecord) -> Approver:
    return Approver(approval.approval_id, "alice", "thumbprint", "jti")


def make_approved(approval: ApprovalRecord, **given: Any) -> Open:
    """An Open of the call that alice has approved."""
    return make_open(approver=by_alice(approval), proof=None, **given)


def make_approval(*, has_budget: bool = False, **given: Any) -> ApprovalRecord:
    number = next(_numbers)
    kept = f'"plan_hash":"{DIGEST}","has_budget":{str(has_budget).lower()}'
    who = given.get("principal", "uid:1000")
    plan = f'{{"action_version":"1.0.0","principal":"{who}","request":"{number}"}}'
    fields: dict[str, Any] = {
        "approval_id": f"apr_{number:04}", "session_id": "ses_1", "action_id": "text_digest",
        "request_hash": f"sha256:{number}", "state": "pending", "created_at": NOW, "expires_at": NOW + 300,
        "body": f'{{{kept},"plan":{plan}}}', "principal": "uid:1000",
    }  # fmt: skip
    return ApprovalRecord(**fields | given)


def answered(approval: ApprovalRecord, **given: Any) -> ApprovalRecord:
    """As operations that write answer it: without its body."""
    return msgspec.structs.replace(approval, body="", **given)


def make_hold(approval: ApprovalRecord | None = None, **given: Any) -> Hold:
    approval = approval or make_approval()
    event = call_event(
        session_id=approval.session_id, action_id=approval.action_id, request_hash=approval.request_hash,
        principal=approval.principal,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "event": event, "approval": approval, "epoch": approval.epoch, "limit": 20, "proof": fresh_proof(),
    }  # fmt: skip
    return Hold(**fields | given)


def outcome_text(**given: Any) -> str:
    """An outcome as it is stored."""
    return msgspec.json.encode(DecisionOutcome(**given)).decode()


def make_claim(approval: ApprovalRecord, holder: str = "front-1", who: str = "alice") -> MoveHold:
    """An operator's decision wins the race, at this front."""
    return MoveHold(approval.approval_id, "pending", "claimed", outcome_text(claimed_by=who), holder=holder)


def make_denial(approval: ApprovalRecord, *, who: str = "alice", refunds: bool = False) -> MoveHold:
    """The end of a claim by an operator who said no."""
    event = call_event(event_type="ApprovalDenied", decision="deny", approval_id=approval.approval_id)
    return MoveHold(
        approval.approval_id, "claimed", "denied", outcome_text(claimed_by=who), event=event, refunds=refunds
    )


def make_expiry(approval: ApprovalRecord, *, refunds: bool = False) -> MoveHold:
    """The end of one that was not decided in time."""
    event = call_event(event_type="ApprovalExpired", decision="deny", approval_id=approval.approval_id)
    return MoveHold(approval.approval_id, "pending", "expired", "{}", event=event, refunds=refunds)


def held_and_claimed(front: Asker, holder: str = "front-1", **given: Any) -> ApprovalRecord:
    """A hold that an operator, alice, has just approved at this front; `given` are its fields."""
    approval = make_approval(**given)
    front.ask(make_hold(approval))
    claimed: ApprovalRecord | None = front.ask(make_claim(approval, holder))
    assert claimed is not None
    return claimed


def make_issue(**given: Any) -> Issue:
    fields: dict[str, Any] = {
        "principal": "uid:1000", "owner": None, "scopes": ("tools:call",), "max_calls": None, "jkt": new("jkt_"),
        "identity_method": "none",
        "event": AuditEvent(event_type="LeaseIssued", trace_id=new("trc_"), principal="uid:1000", decision="allow"),
    }  # fmt: skip
    return Issue(**fields | given)


def record_call(front: Asker, *, epoch: int = 0, approver: Approver | None = None, **event: Any) -> tuple[Open, Closed]:
    """One whole call; `event` are fields of its event."""
    asked = make_open(event=call_event(**event), epoch=epoch, approver=approver)
    closed = front.ask(asked)
    assert isinstance(closed, Closed), closed
    return asked, closed


def call(front: Asker, asked: Open, result: Result) -> Closed:
    """One whole call that comes to this."""
    closed: Closed = front.finish(asked, front.begin(asked), result)
    return closed


def notify(front: Asker, **given: Any) -> AuditEvent:
    """Write an event that is delivered to every endpoint of HOOKS."""
    asked = make_refuse(**given)
    front.ask(asked)
    return asked.event


def claim(
    front: Asker, endpoint: str = "chat", *, now: int = NOW_MS, until: int = UNTIL, limit: int = 100
) -> list[Delivery]:
    """Return the due deliveries of an endpoint, at NOW by default."""
    deliveries: list[Delivery] = front.ask(ClaimDeliveries(endpoint, now, until, limit))
    return deliveries


def claim_one(front: Asker, *, now: int = NOW_MS, until: int = UNTIL) -> Delivery:
    """The only one that is due."""
    (only,) = claim(front, now=now, until=until)
    return only


def settled(delivery: Delivery, **given: Any) -> SettleDelivery:
    """Return the outcome of a claimed delivery: delivered, unless `due` or `error` is given."""
    return SettleDelivery(delivery.seq, delivery.attempt, delivery.event_id, **given)


def hooks(*names: str) -> tuple[WebhookSettings, ...]:
    """Return endpoints that get every event."""
    return tuple(WebhookSettings(name=name, url=f"http://{name}.test/", secret="a secret of words") for name in names)


def changed(struct: Any, **fields: Any) -> Any:
    """The same struct with other fields."""
    return msgspec.structs.replace(struct, **fields)
