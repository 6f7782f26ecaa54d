"""The audit log as operators ask for it (docs/contract.md, "Audit event" and "Admin socket")."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from frontend.contract.annotations import shown_as
from frontend.contract.forms import Moment, Query
from ipc.events import AuditEvent

Decision = Literal["allow", "deny", "error", "pending_approval"]
DEFAULT_EVENTS, MAX_EVENTS = 100, 1000
MAX_SIZE = 2**53 - 1


class EventsQuery(Query, frozen=True, kw_only=True):
    """Which events to show: those that match every filter."""

    trace_id: str | None = None
    """Of one call."""
    action_id: str | None = None
    """Of one action."""
    principal: str | None = None
    """Of one principal; operators are `operator:<name>`."""
    session_id: str | None = None
    """Of one session."""
    event_type: str | None = None
    """Of one type, such as ActionCall."""
    decision: Decision | None = None
    """With this decision."""
    after: Moment | None = None
    """Only events later than this."""
    before: Moment | None = None
    """Only events earlier than this."""
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS)] = DEFAULT_EVENTS
    """How many at most, the newest first."""


class AuditEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the newest first, byte for byte as they are stored and hashed."""

    events: Annotated[list[msgspec.Raw], shown_as(AuditEvent)]
    count: int


class ProofQuery(Query, frozen=True, kw_only=True):
    """What to prove: exactly one of these."""

    event_id: str | None = None
    """An audit event; with the intent and the receipt that it names."""
    intent_id: str | None = None
    """An execution intent; with its event and receipt once it has ended."""
    receipt_id: str | None = None
    """A receipt; with its event and intent."""


class ConsistencyQuery(Query, frozen=True, kw_only=True):
    """What to compare with."""

    old_size: Annotated[int, Meta(ge=0, le=MAX_SIZE)] = field(default=0, name="from")
    """Size of an earlier checkpoint."""


class ChainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk along the whole chain, and the tree beside it, has found."""

    intact: bool
    events_checked: int
    """Events found in order; the broken one is not among them."""
    broken_at: str | None
    """Id of the first event that does not fit; of the last one left when those after it are gone."""
    total_events: int
    """Events that the ledger says it has."""
    verified_links: int
    """`prev_hash` values that are the hash of the event before."""
    reason: str | None
    """What is wrong, for people."""
    head: str | None
    """`sha256:<hex>` of the last event that was found in order."""
    size: int
    """Leaves of the tree of events and intents; 0 when something is broken."""
    root: str | None
    """Root of that tree (RFC 6962), base64; null when something is broken."""
    checkpoint: str | None
    """The newest signed checkpoint, which that tree continues; null when something is broken."""
