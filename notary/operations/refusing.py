"""What operations that refuse have in common: proof, epoch, session, budget, and the one event of a refusal."""

import time

from ipc.events import AuditEvent
from ipc.messages import Proof, Refusal
from notary.unit import Unit


def refused(unit: Unit, event: AuditEvent, code: str, cause: str | None = None) -> Refusal:
    """Write the event of a refusal and answer it."""
    unit.append(event, decision="deny", error_code=code, reason=cause)
    return Refusal(code, cause)


def is_used(unit: Unit, proof: Proof | None) -> bool:
    """Use a proof; True when it was used before. Without one nothing is used."""
    unit.part = "store"
    return proof is not None and not unit.use_proof(proof.key)


def checked(unit: Unit, event: AuditEvent, proof: Proof | None, epoch: int, stale: str) -> Refusal | None:
    """Use the proof, look at epoch and session: the refusal, or None. `stale`: its code where one of them is over."""
    if is_used(unit, proof):
        return refused(unit, event, "replay_detected")
    if proof is None:
        unit.store.confirm_epoch()
    if epoch != unit.epoch:  # a store that lost its epoch must not bring revoked leases back
        return refused(unit, event, stale, f"epoch {epoch} of the call, {unit.epoch} is in force")
    if unit.is_revoked(event.session_id or ""):
        return refused(unit, event, stale, "its session was revoked")
    return None


def debited(unit: Unit, event: AuditEvent, session_id: str) -> tuple[int, int] | Refusal:
    """Take one call of a session: calls before and after, or the refusal."""
    unit.part = "budget"
    began = time.perf_counter_ns()
    budget = unit.store.debit(session_id)
    unit.took("debit", began)
    if not budget.found:
        return refused(unit, event, "budget_session_not_found")
    if not budget.debited:
        return refused(unit, event, "budget_exhausted")
    return budget.remaining + 1, budget.remaining
