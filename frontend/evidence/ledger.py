"""The ledger's interface: what every backend does with events, intents, receipts and the outbox.

Guarantees of every backend: what a method has written is durable when it returns; the pieces of one call are written in
one transaction; events form one chain however many processes write, since its head is read inside the writing
transaction. Evidence is only appended; the outbox changes.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from frontend.evidence.events import AuditEvent
from frontend.evidence.outbox import Outbox
from frontend.evidence.receipts import Receipt


class LedgerUnavailable(Exception):
    """The ledger can't be written or read now: I/O error, full disk, damaged file, lock not had in time."""


class EvidenceRefused(Exception):
    """The ledger works, and what was to be written contradicts what it holds. Nothing was written."""


class GrantConsumed(EvidenceRefused):
    """This grant has been used, or this intent is known already: nothing may be dispatched."""


class AlreadyRecorded(EvidenceRefused):
    """The receipt is in the ledger already, or its intent is not open."""


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What is about to be dispatched (interface specification, "Execution intent")."""

    intent_id: str
    trace_id: str
    action_id: str
    principal: str
    dispatched_at: str
    """UTC, milliseconds, `Z`."""
    grant_id: str
    provider_module: str
    """`sha256:<hex>`."""
    plan_hash: str
    approval_id: str | None = None


class IntentView(msgspec.Struct, frozen=True, kw_only=True):
    """An intent as it is reported."""

    intent_id: str
    trace_id: str
    action_id: str
    principal: str
    dispatched_at: str
    age_seconds: int
    grant_id: str
    provider_module: str


class OutboxRow(msgspec.Struct, frozen=True):
    """A delivery that an event asks for; written with it. Of one event, an endpoint gets one."""

    event_id: str
    kind: str
    """One of ipc.settings.WEBHOOK_KINDS."""
    endpoint: str
    """Name of the endpoint."""
    payload: str
    """JSON text: the exact body that is signed and sent."""


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of a query (interface specification, GET /v1/audit/events); None filters nothing."""

    trace_id: str | None = None
    action_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    event_type: str | None = None
    decision: str | None = None
    after: float | None = None
    """Unix seconds, exclusive."""
    before: float | None = None
    """Unix seconds, exclusive."""
    limit: int = 100


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a walk along the chain."""

    intact: bool
    events_checked: int
    """Events found in order; the broken one is not among them."""
    broken_at: str | None
    """Id of the first event that does not fit, of the last one left when those after it are gone."""
    total_events: int
    """Events that the ledger says it has."""
    verified_links: int
    """`prev_hash` values that are the hash of the event before."""
    reason: str | None
    """What is wrong, for people."""


class Ledger(Protocol):
    """What a backend implements. Everything raises LedgerUnavailable when it can't be done now."""

    async def begin(self, intent: Intent) -> None:
        """Write the intent and consume its grant, in one transaction. Raises GrantConsumed."""

    async def record(
        self, *, receipt: Receipt | None, event: AuditEvent, outbox: tuple[OutboxRow, ...] = (),
        intent_id: str | None = None,
    ) -> None:  # fmt: skip
        """Write receipt, chained event and outbox and resolve the intent, in one transaction.

        `event.receipt_id` must be the receipt's id and `event.intent_id` must be `intent_id` where they are given, and
        each row must name the event: ValueError otherwise. Raises AlreadyRecorded.
        """

    async def append(self, event: AuditEvent, outbox: tuple[OutboxRow, ...] = ()) -> None:
        """Write an event that has no receipt."""

    async def receipt(self, receipt_id: str) -> Receipt | None:
        """A receipt as it was signed."""

    async def receipt_of_approval(self, approval_id: str) -> str | None:
        """Id of the receipt of the call that this approval let run."""

    async def intent_of_approval(self, approval_id: str) -> IntentView | None:
        """The intent of the call that this approval let run, resolved or not."""

    async def unresolved(self, limit: int) -> list[IntentView]:
        """Intents without receipt, oldest first."""

    async def unresolved_count(self) -> int:
        """How many there are."""

    async def query(self, query: EventQuery) -> list[bytes]:
        """Events as stored, newest first."""

    async def verify(self, progress: Callable[[int], None] | None = None) -> VerifyReport:
        """Walk the whole chain. `progress` hears the number of events checked so far, in the walking thread."""

    async def last_time(self) -> float | None:
        """Unix seconds of the newest evidence; None in an empty ledger."""

    async def health(self) -> bool:
        """True when the next write should succeed."""

    @property
    def outbox(self) -> Outbox:
        """What was written with events and waits to be delivered."""

    async def close(self) -> None:
        """Write what is queued and release the ledger."""
