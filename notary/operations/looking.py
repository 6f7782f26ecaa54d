"""Operations that only look: budgets, approvals, receipts, intents, events, and how store and ledger are."""

import time

from msgspec.structs import replace

from ipc import messages as m
from ipc.approvals import listed
from ipc.clock import ClockWrong
from ipc.evidence import IntentView
from ipc.store import ApprovalRecord, Budget
from notary.ledger import outbox
from notary.ledger.receipts import encode_receipt
from notary.reading import queries
from notary.store import budgets, holds, proofs
from notary.unit import Unit

_PROBE = "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', hex(randomblob(8)))"
"""Something else each time: SQLite does not write a page that stays as it is."""


def read_budget(unit: Unit, asked: m.ReadBudget) -> Budget:
    """See ReadBudget."""
    unit.part = "budget"
    return budgets.read(unit.connection, asked.session_id)


def read_epoch(unit: Unit, _asked: m.ReadEpoch) -> int:
    """See ReadEpoch."""
    return unit.epoch


def get_hold(unit: Unit, asked: m.GetHold) -> ApprovalRecord | None:
    """See GetHold."""
    unit.part = "approvals"
    return holds.get(unit.connection, asked.approval_id)


def list_holds(unit: Unit, asked: m.ListHolds) -> list[ApprovalRecord]:
    """See ListHolds."""
    unit.part = "approvals"
    records = holds.newest(unit.connection, asked.states, asked.limit)
    return [replace(record, body=listed(record.body)) for record in records]


def due_holds(unit: Unit, asked: m.DueHolds) -> list[ApprovalRecord]:
    """See DueHolds."""
    unit.part = "approvals"
    return holds.due(unit.connection, unit.now, asked.limit)


def orphaned_holds(unit: Unit, asked: m.OrphanedHolds) -> list[ApprovalRecord]:
    """See OrphanedHolds."""
    unit.part = "approvals"
    # A front that has started since the asking one was told who lives is among those that are here.
    return holds.claimed_by_others(unit.connection, (*asked.live_holders, *unit.state.fronts))


def unsettled_holds(unit: Unit, asked: m.UnsettledHolds) -> list[ApprovalRecord]:
    """See UnsettledHolds."""
    unit.part = "approvals"
    return holds.claimed_by(unit.connection, unit.front_id, asked.at_work)


def read_store(unit: Unit, _asked: m.ReadStore) -> m.StoreStatus:
    """See ReadStore. What every call needs is looked at, too."""
    unit.part = "store"
    proofs.look(unit.connection)
    pending, oldest = holds.count_pending(unit.connection, _roughly_now(unit))
    return m.StoreStatus(pending, oldest, unit.epoch)


def _roughly_now(unit: Unit) -> float:
    """A store works while the clock is wrong: that has a code of its own, which calls are refused with."""
    try:
        return unit.now
    except ClockWrong:
        return time.time()


def read_ledger(unit: Unit, _asked: m.ReadLedger) -> m.LedgerStatus:
    """See ReadLedger."""
    if unit.state.is_failing:
        unit.connection.execute(_PROBE)
    waiting = outbox.waiting(unit.connection)
    unit.state.backlog.found(waiting)
    unresolved = unit.count_unresolved()
    return m.LedgerStatus(unresolved, waiting, dict(unit.state.backlog.dropped))


def show_receipt(unit: Unit, asked: m.ShowReceipt) -> m.ShownReceipt | None:
    """See ShowReceipt."""
    unit.settle()
    receipt = queries.receipt_by_id(unit.connection, asked.receipt_id)
    if receipt is None:
        return None
    return m.ShownReceipt(encode_receipt(receipt).decode(), unit.state.signers.receipts.status(receipt))


def trace_of_approval(unit: Unit, asked: m.TraceOfApproval) -> m.ApprovalTrace:
    """See TraceOfApproval."""
    unit.settle()
    receipt_id = queries.receipt_id_of_approval(unit.connection, asked.approval_id)
    has_intent = queries.has_intent_of_approval(unit.connection, asked.approval_id)
    return m.ApprovalTrace(receipt_id, has_intent)


def list_unresolved(unit: Unit, asked: m.ListUnresolved) -> list[IntentView]:
    """See ListUnresolved."""
    unit.settle()
    return queries.unresolved_intents(unit.connection, asked.limit, unit.now, asked.after)


def query_events(unit: Unit, asked: m.QueryEvents) -> list[bytes]:
    """See QueryEvents."""
    unit.settle()
    return queries.events_of(unit.connection, asked.query)


def next_delivery(unit: Unit, asked: m.NextDelivery) -> int | None:
    """See NextDelivery."""
    return outbox.next_due(unit.connection, asked.endpoint)
