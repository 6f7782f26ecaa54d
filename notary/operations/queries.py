"""Operations that only look: budgets, approvals, receipts, intents, events, and how store and ledger are."""

import os
import secrets
import time
from base64 import b64encode
from typing import Any

from msgspec import convert, structs

from contract.intents import ExpectedFile, LastLook, SeenFile, UnresolvedIntent
from ipc.approvals import ENDED
from ipc.backends.store import ApprovalRecord, Budget
from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import MAX_KEPT
from ipc.evidence.records import IntentDetail
from ipc.operations.deliveries import NextDelivery
from ipc.operations.evidence import ApprovalTrace, FoundEvents, QueryEvents, ShownReceipt, ShowReceipt, TraceOfApproval
from ipc.operations.holds import DueHolds, GetHold, ListedHolds, ListHolds, OrphanedHolds, UnsettledHolds
from ipc.operations.intents import ListUnresolved, ShowIntent
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.operations.status import ClockTold, LedgerStatus, ReadLedger, ReadStore, StoreStatus
from ipc.operations.witnesses import WitnessedCheckpoint
from ipc.process.clock import ClockWrong
from notary.database import DatabaseGone
from notary.ledger import outbox
from notary.ledger.intents import OpenIntent
from notary.reading import queries
from notary.reading.following import end_of
from notary.reading.shown_kept import with_kept
from notary.store.contract import Moment, as_of
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

_PROBE = "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', ?)"
"""Something else each time: SQLite does not write a page that stays as it is."""
_ROOM = 32 * 1024
"""A PostgreSQL whose disk is full still takes rows that fit into pages which it has: more than those have free."""


@performs(ReadBudget)
def read_budget(unit: Transaction, asked: ReadBudget) -> Budget:
    """See ReadBudget."""
    unit.part = "budget"
    return unit.store.budget(asked.session_id)


@performs(ReadEpoch)
def read_epoch(unit: Transaction, _asked: ReadEpoch) -> int:
    """See ReadEpoch."""
    return unit.epoch


@performs(GetHold)
def get_hold(unit: Transaction, asked: GetHold) -> ApprovalRecord | None:
    """See GetHold."""
    epoch = unit.epoch
    unit.part = "approvals"
    if not asked.with_body:
        approval = unit.store.hold_state(asked.approval_id)
    else:
        approval = unit.store.hold(asked.approval_id)
        if approval is None or approval.state in ENDED:
            approval = unit.store.kept_hold(asked.approval_id) or approval
    return None if approval is None else as_of(approval, epoch)


@performs(ListHolds)
def list_holds(unit: Transaction, asked: ListHolds) -> ListedHolds:
    """See ListHolds."""
    return unit.store.list_holds(asked, _moment(unit))


@performs(DueHolds)
def due_holds(unit: Transaction, asked: DueHolds) -> list[ApprovalRecord]:
    """See DueHolds."""
    moment = unit.moment
    unit.part = "approvals"
    return unit.store.due_holds(moment, asked.limit)


@performs(OrphanedHolds)
def orphaned_holds(unit: Transaction, asked: OrphanedHolds) -> list[ApprovalRecord]:
    """See OrphanedHolds."""
    unit.part = "approvals"
    # Fronts that started after the asking one received `live_holders` are in `state.fronts`.
    return unit.store.claimed_by_others((*asked.live_holders, *unit.state.fronts))


@performs(UnsettledHolds)
def unsettled_holds(unit: Transaction, asked: UnsettledHolds) -> list[ApprovalRecord]:
    """See UnsettledHolds."""
    unit.part = "approvals"
    return unit.store.claimed_by(unit.front_id, asked.at_work)


@performs(ReadStore)
def read_store(unit: Transaction, _asked: ReadStore) -> StoreStatus:
    """See ReadStore. It also checks that proofs can be used."""
    unit.part = "store"
    unit.store.look()
    pending, oldest = unit.store.count_pending(_moment(unit))
    return StoreStatus(pending, oldest, unit.epoch)


def _moment(unit: Transaction) -> Moment:
    """The moment by the clock, even a wrong one: the store still works, and calls are refused with clock_error."""
    epoch = unit.epoch
    unit.part = "approvals"
    try:
        return Moment(unit.now, epoch)
    except ClockWrong:
        return Moment(time.time(), epoch)


@performs(ReadLedger)
def read_ledger(unit: Transaction, _asked: ReadLedger) -> LedgerStatus:
    """See ReadLedger."""
    if unit.state.is_failing:
        unit.connection.execute(_PROBE, (secrets.token_hex(_ROOM if unit.state.database.is_shared else 8),))
        unit.has_taken_room = True
    waiting = outbox.waiting(unit.connection)
    unit.state.backlog.found(waiting)
    unresolved = unit.count_unresolved()
    attempts, drops = (
        {name: dict(some) for name, some in counts.items()}
        for counts in (unit.state.backlog.attempts, unit.state.backlog.drops)
    )
    export = unit.state.export
    free = None if unit.state.database.is_shared else _free_bytes(unit.state.settings.ledger_file)
    return LedgerStatus(
        unresolved, waiting, attempts, drops, unit.oldest_unresolved(), _last_checkpoint(unit), free,
        _clock_error(unit), export.status(end_of(unit.connection)) if export.is_asked else None,
    )  # fmt: skip


def _clock_error(unit: Transaction) -> ClockTold | None:
    try:
        unit.state.clock.now()
    except ClockWrong as error:
        return ClockTold(str(error), error.until)
    return None


def _free_bytes(file: str) -> int | None:
    """The free bytes of the ledger's volume without those that are reserved for root."""
    try:
        volume = os.statvfs(os.path.dirname(file))
    except OSError:
        return None
    return volume.f_bavail * volume.f_frsize


def _last_checkpoint(unit: Transaction) -> WitnessedCheckpoint | None:
    made = unit.state.checkpoint
    if made is None:
        return None
    root = b64encode(made.root).decode()
    return WitnessedCheckpoint(made.origin, made.size, root, made.time, unit.state.witnesses.status())


@performs(ShowReceipt, settles=True, is_paced=True)
def show_receipt(unit: Transaction, asked: ShowReceipt) -> ShownReceipt | None:
    """See ShowReceipt."""
    unit.settle()
    stored = queries.receipt_by_id(unit.connection, asked.receipt_id)
    if stored is None:
        return None
    try:
        shown = unit.state.signers.receipts.show(stored)
    except ValueError as error:
        raise DatabaseGone(f"the stored receipt makes no sense: {error}") from None
    return ShownReceipt(shown.receipt, shown.status)


@performs(TraceOfApproval, settles=True)
def trace_of_approval(unit: Transaction, asked: TraceOfApproval) -> ApprovalTrace:
    """See TraceOfApproval."""
    unit.settle()
    receipt_id = queries.receipt_id_of_approval(unit.connection, asked.approval_id)
    has_intent = queries.has_intent_of_approval(unit.connection, asked.approval_id)
    return ApprovalTrace(receipt_id, has_intent)


@performs(ListUnresolved, settles=True, is_paced=True)
def list_unresolved(unit: Transaction, asked: ListUnresolved) -> list[UnresolvedIntent]:
    """See ListUnresolved."""
    unit.settle()
    return queries.unresolved_intents(unit.connection, asked.limit, unit.now, asked.after)


@performs(ShowIntent, settles=True, is_paced=True)
def show_intent(unit: Transaction, asked: ShowIntent) -> IntentDetail | None:
    """See ShowIntent."""
    unit.settle()
    row = queries.unresolved_intent(unit.connection, asked.intent_id, unit.now)
    if row is None:
        return None
    view, plan_hash, approval_id = row
    intent = unit.intent(asked.intent_id)
    return IntentDetail(
        **structs.asdict(view), plan_hash=plan_hash, approval_id=approval_id,
        is_under_way=unit.may_still_end(asked.intent_id),
        last_look=_last_look(queries.last_look(unit.connection, asked.intent_id, view.trace_id)),
        **({} if intent is None else _kept(intent)),
    )  # fmt: skip


def _last_look(event: AuditEvent | None) -> LastLook | None:
    if event is None:
        return None
    seen = convert(event.seen, SeenFile)
    return LastLook(event_id=event.event_id, timestamp=event.timestamp, principal=event.principal or "", seen=seen)


def _kept(intent: OpenIntent) -> dict[str, Any]:
    """The fields that were kept with an intent for the unit that ends it."""
    event, terms, file = intent.event, intent.terms, intent.terms.file
    return {
        "approved_by": None if intent.approver is None else intent.approver.approved_by,
        "action_version": event.action_version,
        "risk_level": event.risk_level,
        "request_hash": event.request_hash,
        "session_id": event.session_id,
        "owner": event.owner,
        "policy_rule": event.policy_rule,
        "sinks": event.allowed_sinks or (),
        "verifier_kind": terms.verifier_kind,
        "timeout_seconds": terms.timeout_seconds,
        "expected": None if file is None else ExpectedFile(path=file.path, sha256=file.sha256, bytes=file.bytes),
    }


@performs(QueryEvents, settles=True, is_paced=True)
def query_events(unit: Transaction, asked: QueryEvents) -> FoundEvents:
    """See QueryEvents. Raises NotAllowed."""
    if len(asked.query.kept) > MAX_KEPT:
        raise NotAllowed("a query for more kept values than a call may have")
    unit.settle()
    found = queries.found_events(unit.connection, asked.query)
    if not asked.with_kept:
        return found
    shown = with_kept(unit.connection, found.events)
    return FoundEvents(shown, found.looked_until if len(shown) == len(found.events) else None)


@performs(NextDelivery)
def next_delivery(unit: Transaction, asked: NextDelivery) -> int | None:
    """See NextDelivery."""
    return outbox.next_due(unit.connection, asked.endpoint)
