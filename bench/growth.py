"""Ledgers of a given length, grown by the notary's own operations: what a year of service leaves behind."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_OPERATIONS
from ipc.messages.calling import Result, Verification
from ipc.operations.calls import GrantTerms, Open, Refuse
from ipc.operations.operation import Operation
from ipc.settings import Settings
from ipc.texts.identifiers import new
from notary.opening import open_state
from notary.operations.closing import Reported
from notary.operations.table import PERFORMERS
from notary.signing.make_keys import make_keys
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task

DIGEST = "sha256:" + "0" * 64
TERMS = GrantTerms(
    plan_hash=DIGEST, module_digest=DIGEST, epoch=0, verifier_kind="unverifiable", max_response_bytes=65_536,
    fuel=10_000_000, memory_mb=64, timeout_seconds=10.0, max_io_calls=0,
)  # fmt: skip
RESULT = Result(
    call_id="", outcome="success", output='{"sha256":"0","bytes":5}', failure=None,
    verification=Verification("unverifiable_declared"), observations=(), fuel_consumed=1000, duration_us=1000,
    io_calls=0,
)  # fmt: skip


def _operations(number: int) -> tuple[Operation[Any], ...]:
    """One call: every tenth is opened and closed, with intent and receipt, the others are refused."""
    known: dict[str, Any] = {
        "event_type": "ActionCall", "trace_id": new("trc_"), "principal": f"agent:{number % 50}",
        "session_id": f"ses_{number % 500}", "lease_jti": f"lea_{number % 500}", "identity_method": "peercred",
        "action_id": f"action_{number % 20}", "action_version": "1.0.0", "risk_level": "low",
        "trust_verdict": "digest_ok", "provider_module_digest": DIGEST, "request_hash": DIGEST,
        "policy_version": "1", "policy_rule": "allow",
    }  # fmt: skip
    if number % 10:
        return (Refuse(AuditEvent(**known, decision="deny", error_code="policy_denied")),)
    intent_id = new("intent_")
    result = msgspec.structs.replace(RESULT, call_id=intent_id)
    return Open(intent_id, AuditEvent(**known, decision="allow"), TERMS, f"worker-{number}"), Reported(result)


def _grow(state_dir: Path, events: int) -> None:
    make_keys(state_dir)
    settings = Settings(
        state_dir=str(state_dir),
        public_base_url="http://gateway.test",
        lease_signing_key_path=str(state_dir / "keys" / "lease.pem"),
        grant_signing_key_path=str(state_dir / "keys" / "grant.pem"),
        receipt_signing_key_path=str(state_dir / "keys" / "receipt.pem"),
        receipt_keys_jwks_path=str(state_dir / "receipt-keys.jwks.json"),
    )
    state, _ = open_state(settings)
    units = TransactionRunner(state, PERFORMERS)
    try:
        tasks: list[Task] = []
        for number in range(events):
            state.workers[f"worker-{number}"] = "front"
            for operation in _operations(number):
                tasks.append(Task("front", len(tasks), operation))
            if len(tasks) >= MAX_OPERATIONS - 1 or number == events - 1:
                problems = [one for one in units.perform(tasks) if one.problem is not None]
                assert not problems, problems[0]
                tasks.clear()
                state.workers.clear()
    finally:
        state.database.close()


@contextmanager
def prepared_ledger(events: int) -> Iterator[Path]:
    """A folder whose `state` holds a ledger of this many events."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder:
        state = Path(folder) / "state"
        state.mkdir(mode=0o700)
        _grow(state, events)
        yield Path(folder)
