"""What the ledger part of the notary tells: intents, queries, reports and deliveries as front and notary see them."""

from typing import Any, Final, Literal

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


class ExpectedEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The file that a call was to leave, below the folder of its action."""

    path: str
    sha256: str
    """`sha256:<hex>` of the whole file."""
    bytes: int


class LastLook(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier saw the last time that an operator had it look again."""

    event_id: str
    timestamp: str
    principal: str
    """`operator:<name>`: who asked."""
    seen: dict[str, str]


class IntentDetail(IntentView, frozen=True, kw_only=True):
    """All that is known of one unresolved intent. Null is what an intent of an earlier version does not tell."""

    plan_hash: str
    approval_id: str | None
    approved_by: str | None = None
    action_version: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    session_id: str | None = None
    owner: str | None = None
    policy_rule: str | None = None
    sinks: tuple[str, ...] = ()
    """Effects that the call was allowed to have."""
    verifier_kind: str | None = None
    timeout_seconds: float | None = None
    is_under_way: bool
    """Its worker may still tell of its end."""
    expected: ExpectedEffect | None = None
    last_look: LastLook | None


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
    head: str | None = None
    """Hash of the last event in order, `sha256:<hex>`; null before the first."""
    size: int = 0
    """Leaves of the tree, events and intents, when the walk ended; 0 when something is broken."""
    root: str | None = None
    """Root of that tree, base64."""
    checkpoint: str | None = None
    """The newest signed checkpoint, which that tree continues."""


class ShownCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A signed checkpoint of the log (docs/evidence.md, "Checkpoints")."""

    origin: str
    """Name of the log: the gateway's public address without its scheme."""
    size: int
    """How many leaves, events and intents, it commits to."""
    root: str
    """Root of their tree (RFC 6962), base64."""
    time: str
    """When it was signed."""
    unresolved_intents: int
    """How many intents had no end then."""
    checkpoint: str
    """The signed note itself (C2SP tlog-checkpoint)."""
    keys: tuple[str, ...]
    """Verifier keys (C2SP signed-note) of all that have signed checkpoints, the one in use first."""


class ProvenLeaf(msgspec.Struct, frozen=True, kw_only=True):
    """One leaf, and its way to the root."""

    kind: Literal["event", "intent"]
    index: int
    """Its place in the log, from 0."""
    bytes: str
    """The leaf as it was hashed, base64."""
    proof: tuple[str, ...]
    """Inclusion proof (RFC 6962 §2.1.1): hashes from the leaf up, base64."""


class BundleKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys for convenience: a verifier takes those that it knew before."""

    checkpoints: tuple[str, ...]
    """Verifier keys (C2SP signed-note)."""
    receipts: dict[str, Any]
    """A JWKS."""
    witnesses: tuple[str, ...] = ()


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of one call, or of one event, that can be verified without the gateway (docs/evidence.md)."""

    bundle_version: Literal[1] = 1
    origin: str
    receipt: str | None
    """The receipt's stored bytes, base64; null where there is none."""
    leaves: tuple[ProvenLeaf, ...]
    checkpoint: str
    """The signed note that the proofs lead to."""
    keys: BundleKeys


class Consistency(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that the log of a checkpoint begins with the log as it was at an earlier size."""

    old_size: int
    proof: tuple[str, ...]
    """Consistency proof (RFC 6962 §2.1.2), base64."""
    checkpoint: str
    """The signed note of the later size."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
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
