"""Operations on evidence: events, receipts, and proofs of what the log holds.

`asker` is the principal or the operator that is charged with the time of a read.
"""

from typing import Final

import msgspec

from contract.evidence import Bundle, Consistency, ShownCheckpoint
from ipc.evidence.events import AuditEvent
from ipc.evidence.records import EventQuery
from ipc.operations.operation import FrontOperation

MAX_SHOWN_BYTES: Final = 8 * 1024 * 1024
"""Events and values of one answer. A list that would have more ends before the event with which it does."""


class WriteEvent(FrontOperation[None], frozen=True):
    """Write an event."""

    event: AuditEvent


class FoundEvents(msgspec.Struct, frozen=True):
    """Events as they are stored, newest first."""

    events: list[bytes]
    looked_until: float | None = None
    """Unix seconds: where the read ended, with fewer events than were asked for, and there may be more before it."""


class QueryEvents(FrontOperation[FoundEvents], frozen=True):
    """Read events. One read looks at a bounded number of them (notary/reading/queries.py)."""

    query: EventQuery
    asker: str = ""
    with_kept: bool = False
    """Show kept values, too: there may be fewer events where they are large (notary/reading/shown_kept.py)."""


class ShownReceipt(msgspec.Struct, frozen=True):
    """A receipt as it was signed (JSON text), and whether its signature still verifies."""

    receipt: bytes
    signature_status: str


class ShowReceipt(FrontOperation[ShownReceipt | None], frozen=True):
    """Read a receipt."""

    receipt_id: str
    asker: str = ""


class ApprovalTrace(msgspec.Struct, frozen=True):
    """`has_intent`: the call was dispatched, with or without a known end."""

    receipt_id: str | None
    has_intent: bool


class TraceOfApproval(FrontOperation[ApprovalTrace], frozen=True):
    """Read what the ledger holds about an approved call."""

    approval_id: str


class ReadCheckpoint(FrontOperation[ShownCheckpoint], frozen=True):
    """Sign and read a checkpoint of everything that was durable when it was asked."""


class Prove(FrontOperation[Bundle | None], frozen=True):
    """Make the bundle of the thing that is named; None when there is nothing of that name."""

    event_id: str | None = None
    intent_id: str | None = None
    receipt_id: str | None = None
    asker: str = ""


class ProveConsistency(FrontOperation[Consistency | None], frozen=True):
    """Prove that the log continues the log of this size; None when it was never of this size."""

    old_size: int
    asker: str = ""
