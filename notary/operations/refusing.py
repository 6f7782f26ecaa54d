"""Checks that several operations share (proof, epoch, session, budget), and the one event of a refusal."""

import time

from msgspec.structs import replace

from ipc.backends.store import ApprovalRecord
from ipc.evidence.events import AuditEvent
from ipc.operations.calls import ProofRecord, Refusal
from ipc.operations.operation import Operation
from notary.ledger import refused as counts
from notary.store.proofs import USABLE_SECONDS
from notary.units.performing import performs
from notary.units.transaction import Transaction


class TellRefusals(Operation[None], frozen=True):
    """Asked by the notary itself: write the events of windows that are over; with `is_end`, of all windows."""

    is_end: bool = False


def refused(unit: Transaction, event: AuditEvent, code: str, cause: str | None = None) -> Refusal:
    """Write the event of a refusal and answer it."""
    write_refusal(unit, replace(event, decision="deny", error_code=code, reason=cause))
    return Refusal(code, cause)


def write_refusal(unit: Transaction, event: AuditEvent) -> None:
    """Write the event of a refusal, or count it (notary/ledger/refused.py)."""
    key = counts.key_of(event)
    if key is None:
        unit.append(event)
        return
    known = counts.counted(unit.refusals.get(key) or unit.state.refusals.get(key), event, unit.now)
    if known.last is event:
        unit.part = "ledger"
        counts.keep(unit.connection, unit.state.database.gateway_id, key, known)
    else:
        unit.append(event)
    unit.refusals[key] = known


@performs(TellRefusals, writes=True)
def tell_refusals(unit: Transaction, asked: TellRefusals) -> None:
    """See TellRefusals."""
    for key, known in (unit.state.refusals | unit.refusals).items():
        if known.last is None or not (asked.is_end or counts.is_due(known, unit.now)):
            continue
        unit.append(known.last, attempts={"count": known.count, "has_proven": True})
        unit.refusals[key] = counts.told(known)
        counts.keep(unit.connection, unit.state.database.gateway_id, key, unit.refusals[key])


def held_already(unit: Transaction, event: AuditEvent) -> ApprovalRecord | None:
    """The hold of the same call, if one waits: then its event is written, and the call is answered with it."""
    unit.part = "approvals"
    session_id, action_id, request_hash = event.session_id or "", event.action_id or "", event.request_hash or ""
    held = unit.store.pending_hold(session_id, action_id, request_hash, unit.moment)
    if held is None:
        return None
    event = replace(
        event, error_code=None, reason=None, deny_reason=None, decision="pending_approval",
        approval_id=held.approval_id, is_repeated=True,
    )  # fmt: skip
    write_refusal(unit, event)
    return without_body(held)


def without_body(held: ApprovalRecord) -> ApprovalRecord:
    """SECURITY: an answer is kept for a front that asks again; it must not hold a request."""
    return replace(held, body="")


def is_used(unit: Transaction, proof: ProofRecord | None) -> bool:
    """Use a proof; True when it was used before, or may have been. Without one nothing is used."""
    unit.part = "store"
    return proof is not None and (unit.now > proof.iat + USABLE_SECONDS or not unit.use_proof(proof.key))


def checked(unit: Transaction, event: AuditEvent, proof: ProofRecord | None, epoch: int, stale: str) -> Refusal | None:
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


def debited(unit: Transaction, event: AuditEvent, session_id: str) -> tuple[int, int] | Refusal:
    """Take one call of a session: calls before and after, or the refusal."""
    unit.part = "budget"
    began = time.perf_counter_ns()
    budget = unit.store.debit(session_id)
    unit.took("debit", began)
    if not budget.found:
        return refused(unit, event, "budget_session_not_found")
    if not budget.debited:
        event = replace(event, budgets_before={"calls_remaining": budget.remaining})
        held = held_already(unit, event)  # perhaps with the last of the budget
        if held is not None:
            return Refusal("budget_exhausted", held=held)
        return refused(unit, event, "budget_exhausted")
    return budget.remaining + 1, budget.remaining
