"""Front and notary: operations that only look, and what they answer.

`asker` is who is charged with the time that a read takes: a principal, or an operator.
"""

import msgspec

from ipc.evidence import DeadLetter, EventQuery
from ipc.messages.operation import Operation
from ipc.messages.proving import LastCheckpoint
from ipc.store import ApprovalRecord


class ReadBudget(Operation, frozen=True):
    """Answers Budget."""

    session_id: str


class ReadEpoch(Operation, frozen=True):
    """Answers the epoch in force."""


class GetHold(Operation, frozen=True):
    """Answers ApprovalRecord as stored, or None; one that has ended with its whole body, as long as that is kept.
    Without `with_body` its body is not read, and empty."""

    approval_id: str
    with_body: bool = True


class ListHolds(Operation, frozen=True):
    """Approvals of these states (None: all), the newest of them. Answers ListedHolds."""

    states: tuple[str, ...] | None
    limit: int
    principal: str | None = None
    action_id: str | None = None
    before: float | None = None
    """Created before that (Unix seconds)."""
    in_turns: bool = False
    """The newest of each principal, then the second of each, and so on: no principal hides another's."""


class ListedHolds(msgspec.Struct, frozen=True):
    """`total` counts all that match; of each body only what a list shows of it."""

    approvals: list[ApprovalRecord]
    total: int


class DueHolds(Operation, frozen=True):
    """Answers pending ApprovalRecords that wait no more, oldest first: as many of `limit` as one answer takes. Their
    time is over, or they are of another epoch."""

    limit: int


class OrphanedHolds(Operation, frozen=True):
    """Answers claimed ApprovalRecords whose holder is none of these, oldest first: as many as one answer takes."""

    live_holders: tuple[str, ...]


class UnsettledHolds(Operation, frozen=True):
    """Answers ApprovalRecords that the front which asks has claimed, oldest first, without those that a task of it is
    settling (`at_work`, ids): as many as one answer takes."""

    at_work: tuple[str, ...]


class ReadStore(Operation, frozen=True):
    """How the store is. Answers StoreStatus."""


class StoreStatus(msgspec.Struct, frozen=True):
    """Approvals that wait for an operator, since when the oldest does (Unix seconds), and the epoch in force."""

    pending: int
    oldest: float | None
    epoch: int


class ReadLedger(Operation, frozen=True):
    """How the ledger is; writes something that means nothing after a failure. Answers LedgerStatus."""


class ClockTold(msgspec.Struct, frozen=True):
    """A clock is wrong: the cause, and the Unix time from which it is right by itself; None if unknown."""

    cause: str
    until: float | None


class LedgerStatus(msgspec.Struct, frozen=True):
    """Unresolved intents; deliveries that wait, by endpoint; the last checkpoint, None before the first."""

    unresolved: int
    waiting: dict[str, int]
    attempts: dict[str, dict[str, int]]
    """Endpoint -> outcome -> attempts since the notary started."""
    drops: dict[str, dict[str, int]]
    """Endpoint -> reason -> deliveries that will never arrive, since the notary started."""
    oldest_unresolved: float | None
    """When the oldest intent was dispatched that no worker is at work on any more (Unix seconds)."""
    checkpoint: LastCheckpoint | None = None
    free_bytes: int | None = None
    """What an unprivileged process may still write to the ledger's volume; None where that can't be told."""
    clock_error: ClockTold | None = None
    """Why the notary tells no time."""


class ListDeliveries(Operation, frozen=True):
    """Answers ListedDeliveries; of an endpoint alone, the newest so many letters."""

    endpoint: str | None
    limit: int


class ListedDeliveries(msgspec.Struct, frozen=True):
    """How many wait and how many were given up, by endpoint; and letters that were given up, the newest first."""

    waiting: dict[str, int]
    given_up: dict[str, int]
    letters: list[DeadLetter]


class ShowReceipt(Operation, frozen=True):
    """Answers ShownReceipt or None."""

    receipt_id: str
    asker: str = ""


class ShownReceipt(msgspec.Struct, frozen=True):
    """A receipt as it was signed, JSON text, and what its signature is worth now."""

    receipt: bytes
    signature_status: str


class TraceOfApproval(Operation, frozen=True):
    """What the ledger holds of an approved call. Answers ApprovalTrace."""

    approval_id: str


class ApprovalTrace(msgspec.Struct, frozen=True):
    """`has_intent`: it was dispatched, whatever came of it."""

    receipt_id: str | None
    has_intent: bool


class ListUnresolved(Operation, frozen=True):
    """Answers IntentViews, newest first. `after`: only those that were written before this one."""

    limit: int
    after: str | None = None
    asker: str = ""


class ShowIntent(Operation, frozen=True):
    """Answers IntentDetail of an intent without a receipt, or None."""

    intent_id: str


class QueryEvents(Operation, frozen=True):
    """Answers the events as stored, newest first."""

    query: EventQuery
    asker: str = ""
