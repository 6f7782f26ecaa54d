"""What the gateway tells of intents without a receipt: calls that were dispatched and whose outcome is unknown."""

from dataclasses import dataclass, field

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A call that was dispatched and whose outcome is unknown."""

    intent_id: str
    trace_id: str
    action_id: str
    principal: str
    dispatched_at: str
    age_seconds: int
    grant_id: str
    provider_module: str
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ExpectedFile:
    """The file that the call was to leave, below the folder of its action."""

    path: str
    sha256: str
    bytes: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SeenFile:
    """What a verifier saw that looked again. It can't tell who wrote what it saw, nor when."""

    verifier_kind: str
    path: str
    expected_sha256: str
    state: str
    """matches, differs, absent or unreadable."""
    sha256: str | None = None
    """Of the file, where it could be read."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LastLook:
    """The last time that an operator had the verifier look again."""

    event_id: str
    timestamp: str
    principal: str
    """`operator:<name>`."""
    seen: SeenFile
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class IntentVerifier:
    """Whether the action's verifier can look again without executing anything."""

    verifier_kind: str | None = None
    can_look_again: bool
    reason: str | None = None
    """Why it can't."""
    expected: ExpectedFile | None = None
    last_look: LastLook | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class IntentDetail(Intent):
    """All that is known of one. None is what the gateway can't tell of an intent that an earlier version wrote."""

    plan_hash: str
    approval_id: str | None = None
    approved_by: str | None = None
    action_version: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    session_id: str | None = None
    owner: str | None = None
    policy_rule: str | None = None
    sinks: tuple[str, ...] = ()
    """Effects that the call was allowed to have: it may have had all of them, some, or none."""
    timeout_seconds: float | None = None
    is_under_way: bool
    """Its worker may still tell of its end: it can be neither verified nor resolved yet."""
    verifier: IntentVerifier


@dataclass(frozen=True, kw_only=True)
class VerifiedIntent:
    """What the verifier saw. The intent stays unresolved."""

    intent_id: str
    trace_id: str
    action_id: str
    seen: SeenFile
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ResolvedIntent:
    """What an operator has said of an unresolved intent."""

    intent_id: str
    trace_id: str
    action_id: str
    outcome: str
    resolved_by: str
    raw: Raw = field(repr=False)
