"""Ledgers of a given length, grown through the ledger's own code: what a year of service leaves behind."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontend.auth.keysets import public_jwk
from frontend.clock import SystemClock
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import Intent
from frontend.evidence.receipts import build_receipt
from frontend.evidence.signing import ReceiptSigner
from frontend.evidence.sqlite import SqliteLedger
from frontend.identifiers import new

AT_ONCE = 500
DIGEST = "sha256:" + "0" * 64


async def _call(ledger: SqliteLedger, clock: SystemClock, signer: ReceiptSigner, number: int) -> None:
    """One call's evidence: every tenth executed, with intent and receipt, the others refused."""
    found: dict[str, Any] = {
        "event_id": new("evt_"), "event_type": "ActionCall", "timestamp": clock.iso(), "trace_id": new("trc_"),
        "principal": f"agent:{number % 50}", "session_id": f"ses_{number % 500}", "lease_jti": f"lea_{number % 500}",
        "identity_method": "peercred", "action_id": f"action_{number % 20}", "action_version": "1.0.0",
        "risk_level": "low", "trust_verdict": "digest_ok", "request_hash": DIGEST, "policy_version": "1",
        "policy_rule": "allow",
    }  # fmt: skip
    if number % 10:
        await ledger.append(AuditEvent(**found, decision="deny", error_code="policy_denied"))
        return
    intent = Intent(
        intent_id=new("intent_"), trace_id=found["trace_id"], action_id=found["action_id"],
        principal=found["principal"], dispatched_at=found["timestamp"], grant_id=new("grant_"), provider_module=DIGEST,
        plan_hash=DIGEST, approval_id=None,
    )  # fmt: skip
    receipt = build_receipt(
        signer, receipt_id=new("rcpt_"), grant_id=intent.grant_id, provider_module_digest=DIGEST,
        provider_receipt={"sha256": "0" * 64, "bytes": 5}, normalized_result={"kind": "success", "summary": "executed"},
        verification_outcome={"status": "unverifiable_declared"}, effect_evidence=[], started_at=found["timestamp"],
        finished_at=found["timestamp"], failure_class=None,
    )  # fmt: skip
    await ledger.begin(intent)
    found |= {"decision": "allow", "receipt_id": receipt.receipt_id, "grant_id": intent.grant_id}
    event = AuditEvent(**found, intent_id=intent.intent_id, runtime={"duration_ms": 1, "exit_code": 0})
    await ledger.record(receipt=receipt, event=event, intent_id=intent.intent_id)


async def _grow(path: Path, events: int) -> None:
    key = Ed25519PrivateKey.generate()
    signer = ReceiptSigner(key, {"keys": [public_jwk(key)]})
    ledger = await SqliteLedger.open(path)
    clock = SystemClock(0)
    try:
        for start in range(0, events, AT_ONCE):
            async with trio.open_nursery() as nursery:
                for number in range(start, min(start + AT_ONCE, events)):
                    nursery.start_soon(_call, ledger, clock, signer, number)
    finally:
        await ledger.close()


@contextmanager
def prepared_ledger(events: int) -> Iterator[Path]:
    """A folder whose `state` holds a ledger of this many events."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        state = Path(folder) / "state"
        state.mkdir(mode=0o700)
        trio.run(_grow, state / "ledger.sqlite3", events)
        yield Path(folder)
