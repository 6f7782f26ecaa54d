"""The audit log as operators ask for it (docs/contract.md, "Audit event" and "Admin socket")."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from contract.noun import shown_as
from frontend.contract.forms import Moment, Query
from ipc.events import AuditEvent

Decision = Literal["allow", "deny", "error", "pending_approval"]
DEFAULT_EVENTS, MAX_EVENTS = 100, 1000
MAX_SIZE = 2**53 - 1


class EventsQuery(Query, frozen=True, kw_only=True):
    """Which events to show: those that match every filter."""

    trace_id: str | None = None
    """Only events of this call."""
    action_id: str | None = None
    """Only events of this action."""
    principal: str | None = None
    """Only events of this principal; operators are `operator:<name>`."""
    session_id: str | None = None
    """Only events of this session."""
    event_type: str | None = None
    """Only events of this type, such as ActionCall."""
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
    """The item to prove: exactly one of these."""

    event_id: str | None = None
    """An audit event; with the intent and the receipt that it names."""
    intent_id: str | None = None
    """An execution intent; with its event and receipt once it has ended."""
    receipt_id: str | None = None
    """A receipt; with its event and intent."""


class ConsistencyQuery(Query, frozen=True, kw_only=True):
    """The checkpoint to compare with."""

    old_size: Annotated[int, Meta(ge=0, le=MAX_SIZE)] = field(default=0, name="from")
    """Size of an earlier checkpoint."""
