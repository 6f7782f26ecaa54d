"""Intents without a receipt, as operators see and resolve them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from frontend.contract.forms import Body, Query

DEFAULT_INTENTS, MAX_INTENTS = 100, 1000
MAX_NOTE = 500

Outcome = Literal["happened", "did_not_happen", "unknown"]
State = Literal["matches", "differs", "absent", "unreadable"]


class IntentsQuery(Query, frozen=True, kw_only=True):
    """Which intents to list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_INTENTS)] = DEFAULT_INTENTS
    """How many at most, the newest first."""
    after: str | None = None
    """Only those that were dispatched before this intent, by its id: the last one of the page before."""


class UnresolvedIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was dispatched, and whose effect is unknown."""

    intent_id: str
    trace_id: str
    action_id: str
    principal: str
    dispatched_at: str
    age_seconds: int
    grant_id: str
    provider_module: str
    """`sha256:<hex>`."""


class UnresolvedIntents(msgspec.Struct, frozen=True, kw_only=True):
    """Intents without a receipt, the newest first."""

    intents: list[UnresolvedIntent]
    count: int
    total: int
    """How many there are, listed or not."""


class ExpectedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The file that the call was to leave, below the folder of its action."""

    path: str
    sha256: str
    """`sha256:<hex>` of the whole file."""
    bytes: int


class SeenFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier saw that looked again. It can't tell who wrote what it saw, nor when."""

    verifier_kind: str
    path: str
    expected_sha256: str
    """`sha256:<hex>` of what the call was to write."""
    state: State
    """matches: the file holds what was to be written; differs: something else; absent: there is no such file."""
    sha256: str | None = None
    """`sha256:<hex>` of the file; null where none could be read."""


class LastLook(msgspec.Struct, frozen=True, kw_only=True):
    """The last time that an operator had the verifier look again."""

    event_id: str
    timestamp: str
    principal: str
    """`operator:<name>`."""
    seen: SeenFile


class IntentVerifier(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the action's verifier can look again without executing anything."""

    verifier_kind: str | None
    can_look_again: bool
    reason: str | None
    """Why it can't; null where it can."""
    expected: ExpectedFile | None
    """What it compares with; null where it can't look again."""
    last_look: LastLook | None


class IntentView(UnresolvedIntent, frozen=True, kw_only=True):
    """All that is known of one. Null is what an intent of an earlier version does not tell."""

    plan_hash: str
    approval_id: str | None
    approved_by: str | None
    action_version: str | None
    risk_level: str | None
    request_hash: str | None
    session_id: str | None
    owner: str | None
    policy_rule: str | None
    sinks: tuple[str, ...]
    """Effects that the call was allowed to have: it may have had all of them, some, or none."""
    timeout_seconds: float | None
    """Its time limit; a minute after it no process tells of its end any more."""
    is_under_way: bool
    """Its worker may still tell of its end: it can be neither verified nor resolved yet."""
    verifier: IntentVerifier


class VerifiedIntent(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier saw; an audit event says so. The intent stays unresolved."""

    intent_id: str
    trace_id: str
    action_id: str
    seen: SeenFile


class ResolveRequest(Body, frozen=True, kw_only=True):
    """The outcome of a call, as the operator found it out."""

    outcome: Outcome
    note: Annotated[str, Meta(max_length=MAX_NOTE)] | None = None
    """How it was found out; goes into the audit event."""


class ResolvedIntent(msgspec.Struct, frozen=True, kw_only=True):
    """It is no longer among the unresolved; an audit event says so, and no receipt does."""

    intent_id: str
    trace_id: str
    action_id: str
    outcome: Outcome
    resolved_by: str
