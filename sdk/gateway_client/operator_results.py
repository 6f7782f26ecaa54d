"""What operators get back: frozen dataclasses with the interface's own names. `raw` is the JSON as the gateway sent it.

The rules are those of gateway_client/results.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class Approval:
    """One item of the list. `state`: pending, claimed, approved, denied, expired or failed."""

    approval_id: str
    action_id: str
    state: str
    action_version: str | None = None
    principal: str | None = None
    session_id: str | None = None
    owner: str | None = None
    risk_level: str | None = None
    request_hash: str | None = None
    created_at: str | None = None
    expires_at: str | None = None
    claimed_by: str | None = None
    receipt_id: str | None = None
    deny_reason: str | None = None
    error_code: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ApprovalDetail(Approval):
    """Everything that will happen when it is approved: the stored plan, which is what is executed.

    `request` is the canonical request, deceiving characters shown as \\uXXXX by the gateway, and backslashes as two;
    `request_json` is the same as one text of JSON in ASCII.
    """

    plan_hash: str
    shown_hash: str | None = None
    """Of what is shown here (approval_signatures.py says what that is); what a signature of the decision names."""
    trace_id: str | None = None
    request: Any = None
    request_json: str | None = None
    approved_targets: tuple[str, ...] = ()
    approved_request: Mapping[str, Any] | None = None
    approved_secrets: tuple[str, ...] = ()
    secret_domains: Mapping[str, Any] | None = None
    """By name of a secret: the hosts whose requests it is added to."""
    approved_egress: Mapping[str, Any] | None = None
    approved_files: Mapping[str, Any] | None = None
    unresolved_domains: tuple[str, ...] = ()
    unresolved_paths: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()
    verifier_kind: str | None = None
    provider_module_digest: str | None = None
    resource_limits: Mapping[str, Any] | None = None
    policy_version: str | None = None
    policy_rule: str | None = None
    budget_snapshot: Mapping[str, Any] | None = None
    revocation_epoch: int | None = None
    claimed_at: str | None = None
    completed_at: str | None = None
    approval_signature: str | None = None
    """The operator's own signature of the decision."""
    description: str | None = None
    """The action's description when the call was held; None if it had none, or from an earlier gateway."""


@dataclass(frozen=True, kw_only=True)
class ApprovalPage:
    """Approvals, newest first: `count` of the `total` that match."""

    approvals: tuple[Approval, ...]
    count: int
    total: int | None = None
    """None from a gateway of before, which did not tell."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Denial:
    """A held call that was denied."""

    approval_id: str
    action_id: str
    trace_id: str
    denied_by: str
    deny_reason: str | None = None
    decision: str = "deny"
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class AuditEvent:
    """One event of the audit chain; fields that do not stand here are in `raw`, which is the whole event."""

    event_id: str
    event_type: str
    timestamp: str
    trace_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    action_id: str | None = None
    decision: str | None = None
    deny_reason: str | None = None
    reason: str | None = None
    error_code: str | None = None
    receipt_id: str | None = None
    approval_id: str | None = None
    approved_by: str | None = None
    prev_hash: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class EventPage:
    """Events, newest first."""

    events: tuple[AuditEvent, ...]
    count: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class AuditVerification:
    """The gateway's walk along its chain and tree. `broken_at`: the first event that does not fit, or `head`.

    What follows `reason` is None where something is broken, and from gateways that have no tree.
    """

    intact: bool
    events_checked: int
    broken_at: str | None = None
    total_events: int | None = None
    verified_links: int | None = None
    reason: str | None = None
    head: str | None = None
    """Hash of the newest event, `sha256:<hex>`. Of a broken chain: of the last event in order."""
    size: int | None = None
    """Leaves of the tree, events and intents; 0 when something is broken."""
    root: str | None = None
    """Root of that tree, base64."""
    checkpoint: str | None = None
    """The newest signed checkpoint, which that tree continues."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Webhooks:
    """Outbound notifications."""

    active: bool
    pending_deliveries: int | None = None
    """None while the ledger can't tell."""
    gone: tuple[str, ...] = ()
    """Endpoints that have answered 410 since the last reload."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Witness:
    """One that is asked to cosign checkpoints."""

    name: str
    has_cosigned: bool
    """Whether it has cosigned the last checkpoint."""
    size: int | None = None
    """Entries of the largest checkpoint that it has cosigned."""
    time: str | None = None
    """When it did, by its own clock."""
    problem: str | None = None
    """Why it has not cosigned, when it was asked last."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LastCheckpoint:
    """The last signed checkpoint of the log, as status shows it."""

    origin: str
    size: int
    root: str
    time: str
    age_seconds: int
    witnesses: tuple[Witness, ...] = ()
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LedgerVolume:
    """Room for evidence: calls are refused (503 `ledger_full`) while it is full. None: that can't be told."""

    free_bytes: int | None
    min_free_bytes: int
    is_full: bool
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Status:
    """`GET /v1/admin/status`. `status`: ok, degraded or draining. `dependencies`: `redis`, `opa`, and
    `egress_proxy` where one is configured."""

    status: str
    version: str
    uptime_seconds: int
    actions_registered: int
    pending_approvals: int | None = None
    revocation_epoch: int | None = None
    draining: bool
    in_flight_executions: int
    unresolved_intents: int | None = None
    dependencies: Mapping[str, Any]
    backends: Mapping[str, Any] | None = None
    webhooks: Webhooks | None = None
    checkpoint: LastCheckpoint | None = None
    """None before the first, and while the ledger can't tell."""
    ledger_volume: LedgerVolume | None = None
    crash_loops: tuple[str, ...] = ()
    """Processes that end again and again; the gateway is not ready while there is any."""
    policy_version: str | None = None
    weakened: tuple[str, ...] = ()
    """Settings that make the gateway less safe than production asks for."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Drained:
    """The gateway refuses new work from now on."""

    draining: bool
    already_draining: bool
    in_flight_executions: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Which audit events. `after` and `before` are exclusive bounds on the time (ISO 8601).

    `decision`: allow, deny, error or pending_approval.
    """

    trace_id: str | None = None
    action_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    event_type: str | None = None
    decision: str | None = None
    after: str | None = None
    before: str | None = None
