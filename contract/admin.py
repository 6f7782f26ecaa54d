"""Operating the gateway: its status, its drain."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .health import ClockFault
from .noun import LEFT_OUT, NEVER_NULL, Listed, NeverNull, Noun, shown_as


class Dependencies(msgspec.Struct, frozen=True, kw_only=True):
    """The services that every decision needs, and the proxy that some actions need."""

    redis: bool
    """The key-value store, whatever serves it."""
    opa: bool
    """The policy engine, whatever serves it."""
    egress_proxy: bool | UnsetType = UNSET
    """Whether the egress proxy answers; absent where none is configured."""


class Webhooks(Noun, frozen=True, kw_only=True):
    """Outbound notifications."""

    active: bool
    """An endpoint is configured and not disabled."""
    pending_deliveries: int | None
    """Deliveries that wait, those under way among them; null while the ledger can't tell."""
    gone: Listed[str] = LEFT_OUT
    """Endpoints that have answered 410 since the last reload: nothing is sent to them. Absent when empty."""


class Backends(msgspec.Struct, frozen=True, kw_only=True):
    """The backend of each part; the contract calls store and policy engine `redis` and `opa` in `dependencies`."""

    store: Literal["sqlite", "redis"]
    policy: Literal["embedded", "opa"]
    ledger: Literal["sqlite", "postgresql"]


class PolicyMemo(Noun, frozen=True, kw_only=True):
    """Whether decisions of the policy in force are remembered (docs/policy.md, "What is remembered")."""

    in_use: bool
    reason: str | None
    """Why not; null while it is in use."""
    entries: int
    """Decisions that are remembered now, by the front that answers."""


class Witness(Noun, frozen=True, kw_only=True):
    """A witness that is asked to cosign checkpoints (docs/evidence.md, "Witnesses")."""

    name: str
    """Its name in the configuration."""
    has_cosigned: bool
    """Whether it has cosigned this checkpoint."""
    size: int | None
    """Entries of the largest checkpoint that it has cosigned; null before the first."""
    time: str | None
    """When it did, by its own clock."""
    problem: str | None
    """Why it has not cosigned, when it was asked last; null when it did."""


class LastCheckpoint(Noun, frozen=True, kw_only=True):
    """The last checkpoint that was signed: at most one a second while events and intents are written."""

    origin: str
    """Name of the log: the gateway's public address without its scheme."""
    size: int
    """Events and intents that it commits to."""
    root: str
    """Root of their tree (RFC 6962), base64."""
    time: str
    """When it was signed."""
    age_seconds: int
    """Since then."""
    witnesses: Listed[Witness]
    """In the order of the configuration."""


class LedgerVolume(Noun, frozen=True, kw_only=True):
    """Room for evidence. A call and a lease are refused (503 `ledger_full`) while it is full."""

    free_bytes: int | None
    """Bytes that the gateway may still write there; null where that can't be told."""
    min_free_bytes: int
    """`ledger.min_free_bytes` of the configuration."""
    is_full: bool


class AdminStatus(Noun, frozen=True, kw_only=True):
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
    dependencies: Annotated[Mapping[str, Any], shown_as(Dependencies)]
    backends: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(Backends)]
    webhooks: NeverNull[Webhooks]
    ledger_volume: NeverNull[LedgerVolume]
    checkpoint: LastCheckpoint | None
    """The last signed checkpoint of the log; null before the first, and while the ledger can't tell."""
    policy_version: NeverNull[str]
    policy_memo: NeverNull[PolicyMemo]
    clock_error: ClockFault | None
    """Why calls and leases are 503 `clock_error`; null while the clock is right."""
    crash_loops: Listed[str]
    """Processes of the gateway that end again and again; readiness fails while there is any."""
    weakened: Listed[str]
    """Settings that make the gateway less safe than production asks for."""


class Drained(Noun, frozen=True, kw_only=True):
    """The gateway takes no more work."""

    draining: bool
    already_draining: bool
    in_flight_executions: int
    """Poll the status until this is 0 before ending the process."""


class RevokedAll(Noun, frozen=True, kw_only=True):
    """Leases, grants and held plans of `previous_epoch` and before are dead."""

    previous_epoch: int
    current_epoch: int


class CurrentEpoch(Noun, frozen=True, kw_only=True):
    """The revocation epoch in force."""

    current_epoch: int


class ReloadResult(Noun, frozen=True, kw_only=True):
    """Manifests, policy, operators and principals as they lay on the disk are in force."""

    manifests_loaded: int
    policy_reloaded: Literal[True]
    reloaded_at: str
    """UTC, milliseconds, `Z`."""
    actions: NeverNull[int]
    """How many are registered."""
    policy_version: NeverNull[str]
    changed: Listed[str]
    """Names of settings of the configuration file that came into force with it."""
    needs_restart: Listed[str]
    """Names of settings that have changed in the configuration file since the start, and wait for the next one."""
