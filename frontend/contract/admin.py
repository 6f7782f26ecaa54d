"""Operating the gateway: its status, its drain, intents without a receipt."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from frontend.contract.forms import Body, Query

DEFAULT_INTENTS, MAX_INTENTS = 100, 1000
MAX_NOTE = 500


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """What the gateway can't decide without, and the proxy that some actions can't do without."""

    redis: bool
    """The key-value store, whatever serves it."""
    opa: bool
    """The policy engine, whatever serves it."""
    egress_proxy: bool | UnsetType = UNSET
    """Whether the egress proxy answers; absent where none is configured."""


class Webhooks(msgspec.Struct, frozen=True, kw_only=True):
    """Outbound notifications."""

    active: bool
    """An endpoint is configured and not disabled."""
    pending_deliveries: int | None
    """Deliveries that wait, those under way among them; null while the ledger can't tell."""


class Backends(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind each part; the contract calls store and policy engine `redis` and `opa` in `dependencies`."""

    store: Literal["sqlite"]
    policy: Literal["embedded", "opa"]
    ledger: Literal["sqlite"]


class PolicyMemo(msgspec.Struct, frozen=True, kw_only=True):
    """Whether decisions of the policy in force are remembered (docs/policy.md, "What is remembered")."""

    in_use: bool
    reason: str | None
    """Why not; null while it is in use."""
    entries: int
    """Decisions that are remembered now, by the front that answers."""


class AdminStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of the running gateway. Null is what a store that is down can't tell."""

    status: Literal["ok", "degraded", "draining"]
    version: str
    uptime_seconds: int
    actions_registered: int
    pending_approvals: int | None
    revocation_epoch: int | None
    unresolved_intents: int | None
    """Calls that were dispatched and have no receipt."""
    draining: bool
    in_flight_executions: int
    dependencies: Dependencies
    backends: Backends
    webhooks: Webhooks
    policy_version: str
    policy_memo: PolicyMemo
    weakened: list[str]
    """Settings that make the gateway less safe than production asks for."""


class Drained(msgspec.Struct, frozen=True, kw_only=True):
    """The gateway takes no more work."""

    draining: bool
    already_draining: bool
    in_flight_executions: int
    """Poll the status until this is 0 before ending the process."""


class RevokedAll(msgspec.Struct, frozen=True, kw_only=True):
    """Leases, grants and held plans of `previous_epoch` and before are dead."""

    previous_epoch: int
    current_epoch: int


class CurrentEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """The revocation epoch in force."""

    current_epoch: int


class ReloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """Manifests and policy as they lay on the disk are in force."""

    manifests_loaded: int
    policy_reloaded: Literal[True] = True
    reloaded_at: str
    """UTC, milliseconds, `Z`."""
    actions: int
    """How many are registered."""
    policy_version: str


class IntentsQuery(Query, frozen=True, kw_only=True):
    """Which intents to list."""

    limit: Annotated[int, Meta(ge=1, le=MAX_INTENTS)] = DEFAULT_INTENTS
    """How many at most, the oldest first."""
    after: str | None = None
    """Only those that were written after this intent, by its id: the last one of the page before."""


class ResolveRequest(Body, frozen=True, kw_only=True):
    """What came of it, as far as somebody found out."""

    outcome: Literal["happened", "did_not_happen", "unknown"]
    note: Annotated[str, Meta(max_length=MAX_NOTE)] | None = None
    """How it was found out; goes into the audit event."""


class ResolvedIntent(msgspec.Struct, frozen=True, kw_only=True):
    """It is no longer among the unresolved; an audit event says so, and no receipt does."""

    intent_id: str
    trace_id: str
    action_id: str
    outcome: Literal["happened", "did_not_happen", "unknown"]
    resolved_by: str


class UnresolvedIntent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was dispatched, and nobody knows what came of it."""

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
    """Intents without a receipt, the oldest first."""

    intents: list[UnresolvedIntent]
    count: int
    total: int
    """How many there are, listed or not."""
