"""Intents without a receipt, as operators see and resolve them."""

from typing import Literal

from .noun import Listed, NeverNull, Noun

Outcome = Literal["happened", "did_not_happen", "unknown"]
State = Literal["matches", "differs", "absent", "unreadable"]


class UnresolvedIntent(Noun, frozen=True, kw_only=True):
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


class UnresolvedIntents(Noun, frozen=True, kw_only=True):
    """Intents without a receipt, the newest first."""

    intents: tuple[UnresolvedIntent, ...]
    count: int
    total: NeverNull[int]
    """How many there are, listed or not."""


class ExpectedFile(Noun, frozen=True, kw_only=True):
    """The file that the call was to leave, below the folder of its action."""

    path: str
    sha256: str
    """`sha256:<hex>` of the whole file."""
    bytes: int


class SeenFile(Noun, frozen=True, kw_only=True):
    """A verifier's finding when it looked again. It can't tell who wrote the file, nor when."""

    verifier_kind: str
    path: str
    expected_sha256: str
    """`sha256:<hex>` of what the call was to write."""
    state: State
    """matches: the file holds the expected bytes; differs: other bytes; absent: there is no such file."""
    sha256: str | None = None
    """`sha256:<hex>` of the file; null where none could be read."""


class LastLook(Noun, frozen=True, kw_only=True):
    """The last time that an operator had the verifier look again."""

    event_id: str
    timestamp: str
    principal: str
    """`operator:<name>`."""
    seen: SeenFile


class IntentVerifier(Noun, frozen=True, kw_only=True):
    """Whether the action's verifier can look again without executing anything."""

    verifier_kind: str | None
    can_look_again: bool
    reason: str | None
    """Why it can't; null where it can."""
    expected: ExpectedFile | None
    """The file that it compares with; null where it can't look again."""
    last_look: LastLook | None


class DispatchedIntent(UnresolvedIntent, frozen=True, kw_only=True):
    """The call of an unresolved intent. Null where an intent of an earlier version has no such member."""

    plan_hash: str
    approval_id: str | None
    approved_by: str | None = None
    action_version: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    session_id: str | None = None
    owner: str | None = None
    policy_rule: str | None = None
    sinks: Listed[str] = ()
    """Effects that the call was allowed to have: it may have had all of them, some, or none."""
    timeout_seconds: float | None = None
    """Its time limit; a minute after it no process tells of its end any more."""
    is_under_way: bool
    """Its worker may still tell of its end: it can be neither verified nor resolved yet."""


class IntentView(DispatchedIntent, frozen=True, kw_only=True):
    """All that is known of one. Null is what an intent of an earlier version does not tell."""

    verifier: IntentVerifier


class VerifiedIntent(Noun, frozen=True, kw_only=True):
    """The verifier's finding; an audit event records it. The intent stays unresolved."""

    intent_id: str
    trace_id: str
    action_id: str
    seen: SeenFile


class ResolvedIntent(Noun, frozen=True, kw_only=True):
    """It is no longer among the unresolved; an audit event says so, and no receipt does."""

    intent_id: str
    trace_id: str
    action_id: str
    outcome: Outcome
    resolved_by: str
