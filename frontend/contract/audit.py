"""The audit log as operators ask for it (docs/contract.md, "Audit event" and "Admin socket")."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from contract.audit import KeptState
from contract.noun import shown_as
from frontend.contract.forms import MAX_TEXT, Moment, Query, StoredText, text_like
from ipc.evidence.events import AuditEvent

Decision = Literal["allow", "deny", "error", "pending_approval"]
DEFAULT_EVENTS, MAX_EVENTS = 100, 1000
MAX_SIZE = 2**53 - 1
_POINTER = r"(?:/(?:[^~/\x00]|~[01])*)+"


Pointer = Annotated[str, text_like(_POINTER, "a JSON pointer")]
KeptFilters = Annotated[
    dict[Pointer, str],
    Meta(
        extra={
            "must": "one value for each JSON pointer, such as kept./invoice_id=in_7",
            "schema": {
                "type": "object", "propertyNames": {"pattern": rf"^kept\.(?:{_POINTER})$"},
                "additionalProperties": {"type": "string", "maxLength": MAX_TEXT},
            },
        }
    ),
]  # fmt: skip
"""In a query: `kept.<pointer>=<value>`, for each member of the object."""


class EventsQuery(Query, frozen=True, kw_only=True):
    """Which events to show: those that match every filter."""

    trace_id: StoredText | None = None
    """Only events of this call."""
    action_id: StoredText | None = None
    """Only events of this action."""
    principal: StoredText | None = None
    """Only events of this principal; operators are `operator:<name>`."""
    session_id: StoredText | None = None
    """Only events of this session."""
    kept: KeptFilters = field(default_factory=dict)
    """Only events that keep these values: `kept.<JSON pointer>=<value>`. A number or a flag is found as people write
    it; masked values are not found."""
    event_type: StoredText | None = None
    """Only events of this type, such as ActionCall."""
    decision: Decision | None = None
    """With this decision."""
    after: Moment | None = None
    """Only events later than this."""
    before: Moment | None = None
    """Only events earlier than this."""
    limit: Annotated[int, Meta(ge=1, le=MAX_EVENTS)] = DEFAULT_EVENTS
    """How many at most, the newest first. There may be fewer where these are more than 8 MiB."""


class ShownEvent(AuditEvent, frozen=True, kw_only=True, omit_defaults=True):
    """An event as it is stored; behind its last member come `kept_state` and `kept_values` if it has `kept`."""

    kept_state: KeptState | UnsetType = UNSET
    """`whole`; `erased`: an EvidenceErased event lists what is gone; `missing`: a value is gone without one, or is not
    the one that the event commits to."""
    kept_values: dict[str, str | int | float | bool | None] | UnsetType = UNSET
    """JSON pointer -> value. Null is one that was erased or is missing. These two are no part of the hashed bytes."""


class AuditEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the newest first, each byte for byte as it is stored and hashed, up to its kept values."""

    events: Annotated[list[msgspec.Raw], shown_as(ShownEvent)]
    count: int


class ProofQuery(Query, frozen=True, kw_only=True):
    """The item to prove: exactly one of these."""

    event_id: StoredText | None = None
    """An audit event; with the intent and the receipt that it names."""
    intent_id: StoredText | None = None
    """An execution intent; with its event and receipt once it has ended."""
    receipt_id: StoredText | None = None
    """A receipt; with its event and intent."""


class ConsistencyQuery(Query, frozen=True, kw_only=True):
    """The checkpoint to compare with."""

    old_size: Annotated[int, Meta(ge=0, le=MAX_SIZE)] = field(default=0, name="from")
    """Size of an earlier checkpoint."""
