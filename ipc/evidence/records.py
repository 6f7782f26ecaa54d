"""Data of the ledger as front and notary exchange them: intents, queries, reports and deliveries."""

from typing import Final

import msgspec

from contract.intents import DispatchedIntent, ExpectedFile, LastLook

FAR_MS: Final = 2 * 3600 * 1000
"""No delivery is put off for longer than an hour: what is due later than this was dated by a clock that was wrong
since, and is due."""


class IntentDetail(DispatchedIntent, frozen=True, kw_only=True):
    """All that the notary knows of an unresolved intent. Null is what an intent of an earlier version does not tell."""

    verifier_kind: str | None = None
    expected: ExpectedFile | None = None
    last_look: LastLook | None


class KeptFilter(msgspec.Struct, frozen=True, array_like=True):
    """Only events that keep this value, as people write it, at this JSON pointer."""

    pointer: str
    value: str


class EventQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filters of a query (docs/contract.md, "Admin socket": GET /v1/audit/events); None filters nothing."""

    trace_id: str | None = None
    action_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    kept: tuple[KeptFilter, ...] = ()
    event_type: str | None = None
    decision: str | None = None
    after: float | None = None
    """Unix seconds, exclusive."""
    before: float | None = None
    """Unix seconds, exclusive."""
    limit: int = 100


class AbandonedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that was given up, `at` in milliseconds since the Unix epoch."""

    event_id: str
    kind: str
    endpoint: str
    attempts: int
    at: int
    error: str


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One claimed delivery of the outbox. `attempt` counts this one, from 1."""

    seq: int
    event_id: str
    kind: str
    endpoint: str
    payload: str
    attempt: int
