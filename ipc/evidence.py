"""What the ledger part of the notary tells: intents, queries, reports and deliveries as front and notary see them."""

from typing import Final

import msgspec

FAR_MS: Final = 2 * 3600 * 1000
"""No delivery is put off for longer than an hour: what is due later than this was dated by a clock that was wrong
since, and is due."""


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


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a query (docs/contract.md, "Admin socket": GET /v1/audit/events); None filters nothing."""

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


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One claimed delivery of the outbox. `attempt` counts this one, from 1."""

    seq: int
    event_id: str
    kind: str
    endpoint: str
    payload: str
    attempt: int
