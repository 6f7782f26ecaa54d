"""Held calls: polled by agents; listed, read and decided by operators (docs/decisions/approvals.md, "Approvals")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .actions import ResourceLimits, RiskLevel
from .noun import LEFT_OUT, NEVER_NULL, Listed, NeverNull, Noun, shown_as

State = Literal["pending", "claimed", "approved", "denied", "expired", "failed"]
PolledState = Literal["pending", "claimed", "approved", "denied", "expired"]
PolledStatus = Literal["pending", "approved", "denied", "expired", "failed"]


class ApprovalPoll(Noun, frozen=True, kw_only=True):
    """The state of a held call, for its agent."""

    approval_id: str
    action_id: NeverNull[str]
    state: PolledState
    status: NeverNull[PolledStatus]
    """As `state`, but `pending` while an operator's decision is being carried out, and `failed` with that `outcome`."""
    outcome: NeverNull[Literal["failed"]] = LEFT_OUT
    """Present when an approved call could not be carried out."""
    receipt_id: NeverNull[str] = LEFT_OUT
    """The receipt of the call, once it was approved and ran."""
    deny_reason: str | None = LEFT_OUT
    """Once it was denied: what the operator said, or null."""
    reason: str | None = LEFT_OUT
    """Once it was denied: the same. With the `outcome` failed: the error code."""
    retry_after_seconds: NeverNull[int] = LEFT_OUT
    """While nothing is decided: when to ask again."""

    @property
    def is_decided(self) -> bool:
        """True when the state will not change any more."""
        return self.state not in {"pending", "claimed"}


class ApprovalItem(Noun, frozen=True, kw_only=True):
    """The facts of every approval. Null where the plan can't be read."""

    approval_id: str
    action_id: str
    action_version: str | None
    state: State
    status: NeverNull[PolledStatus]
    principal: str | None
    session_id: NeverNull[str]
    owner: str | None
    risk_level: RiskLevel | None
    request_hash: NeverNull[str]
    """`sha256:<hex>` of the canonical request."""
    created_at: NeverNull[str]
    expires_at: NeverNull[str]


class OneApproval(msgspec.Struct, frozen=True, kw_only=True):
    """One approval of several."""

    approved_by: str
    operator_jkt: str
    """Thumbprint of the operator's key."""
    operator_proof_jti: str
    at: str
    groups: tuple[str, ...] | UnsetType = UNSET
    """The groups of the quorum that the operator was in."""
    signature: str | UnsetType = UNSET
    """The operator's own signature of the decision."""


class ApprovalCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the needed approvals are given, and by whom."""

    given: int
    needed: int
    groups: dict[str, int]
    """Name of a group -> how many of its members must be among them; an operator counts for one group."""
    by: tuple[OneApproval, ...]
    """The first one first."""


class ApprovalQuorum(msgspec.Struct, frozen=True, kw_only=True):
    """The approvals that a call needs."""

    count: int
    groups: dict[str, int]


class ApprovalGiven(Noun, frozen=True, kw_only=True):
    """An approval is stored, and others must follow before the call runs."""

    decision: Literal["pending_approval"] = "pending_approval"
    approval_id: str
    action_id: str
    trace_id: str
    approvals: Annotated[Mapping[str, Any], shown_as(ApprovalCount)]


class ListedApproval(ApprovalItem, frozen=True, kw_only=True):
    """An approval in the operator's list, with its outcome. Null until there is one."""

    claimed_by: str | None = None
    """The operator who decided."""
    receipt_id: str | None = None
    """The receipt of the call, once it was approved and ran."""
    deny_reason: str | None = None
    error_code: str | None = None
    """Why an approved call did not come to its end."""
    summary: NeverNull[str] = LEFT_OUT
    """The line by which people know the call, made of its kept values; absent without one."""
    approvals: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ApprovalCount)] = LEFT_OUT
    """The count for a call that needs several approvals."""


class ApprovalList(Noun, frozen=True, kw_only=True):
    """Approvals, the newest first."""

    approvals: tuple[ListedApproval, ...]
    count: int
    """How many are listed here."""
    total: NeverNull[int]
    """How many match the filters."""


class ApprovedEgress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the call may connect to."""

    profile: Literal["none", "direct_allowlist", "proxy_allowlist"]
    allowed_domains: tuple[str, ...]
    allowed_methods: tuple[str, ...]
    private_networks: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Names of the private networks that the call may enter; absent without such networks."""


class ApprovedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The call's whole access to files."""

    allowed_operations: tuple[str, ...]
    allowed_paths: tuple[str, ...]
    denied_paths: tuple[str, ...]
    max_file_bytes: int
    max_total_bytes: int
    max_files: int


class ApprovedTool(msgspec.Struct, frozen=True, kw_only=True):
    """The tool of an MCP server that the request calls."""

    name: str
    digest: str
    """The digest by which the action's manifest pins it; a tool that has another one is not called."""


class ApprovedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the upstream's answer that the result will have."""

    headers: tuple[str, ...]
    pick: dict[str, str]
    """Member of the result's body -> JSON pointer into the answer's body. Empty: the whole body."""


class ApprovedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The one HTTP request that the call will send, without secrets."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    tool: ApprovedTool | UnsetType = UNSET
    """Given where the request calls a tool of an MCP server; `body` is the message that calls it."""
    response: ApprovedResponse | UnsetType = UNSET
    """Given where the action chooses parts of the answer."""
    idempotency_header: str | UnsetType = UNSET
    """The header whose value, shown as `<intent id>`, is the id of the call's intent."""


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of the session's budget when policy was asked."""

    calls_remaining: int | None
    """Null for a lease without budget."""


class CapOfCall(msgspec.Struct, frozen=True, kw_only=True):
    """A cap of the action as it stands for one call. Amounts are plain decimals in texts, exact to nine places."""

    pointer: str
    per: str
    """principal, owner or all."""
    total: str
    """The sum of the window without this call."""
    with_this: str
    """The sum with it."""
    hold_above: str | None = None
    """Null where this cap does not hold the call."""
    deny_above: str | None = None
    """Null where this cap denies nothing."""
    window_seconds: int


class ApprovalDetail(ApprovalItem, frozen=True, kw_only=True):
    """Everything an operator must see before deciding. Once it has ended, the request is kept for a time that the
    gateway's operator sets, and then no more, nor what the request has filled in: `request`, `request_json`,
    `approved_request` and `shown_hash` are null then, `approved_targets` end with the host, and `unresolved_paths` is
    empty. In strings that an agent chose, characters that could hide or disguise something are `\\uXXXX`, and a
    backslash is two: no two texts are shown alike."""

    trace_id: NeverNull[str]
    description: NeverNull[str] = LEFT_OUT
    """The action's description when the call was held. Absent where it had none, and of holds of an earlier version."""
    summary: NeverNull[str] = LEFT_OUT
    """The line by which people know the call, made of its kept values. Absent without one, and once the request is not
    kept any more."""
    request: Any
    """The canonical request, exactly as it will be executed. Null once it is not kept any more."""
    request_json: str | None
    """The same as one text of JSON in ASCII. Null once it is not kept any more."""
    approved_targets: Listed[str]
    """The targets of the call: `METHOD url`, or `fs:<operation> <path>`."""
    approved_request: Annotated[Mapping[str, Any], shown_as(ApprovedRequest)] | None
    """Null for an action that sends no HTTP request by template, and once it is not kept any more."""
    approved_secrets: Listed[str]
    """Names; never values."""
    secret_domains: NeverNull[Mapping[str, tuple[str, ...]]]
    """By name of a secret that is added to requests: the hosts whose requests it is added to."""
    secret_ways: NeverNull[Mapping[str, str]] = LEFT_OUT
    """By the same names: the way in which it is added, such as `as header Authorization`."""
    approved_egress: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ApprovedEgress)]
    approved_files: Annotated[Mapping[str, Any], shown_as(ApprovedFiles)] | None
    """Null for an action without files."""
    unresolved_domains: Listed[str]
    """Hosts that no rule of the action allows yet."""
    unresolved_paths: Listed[str]
    """Paths that no rule of the action allows yet."""
    sinks: Listed[str]
    verifier_kind: NeverNull[str]
    provider_module_digest: NeverNull[str]
    resource_limits: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ResourceLimits)]
    policy_version: NeverNull[str]
    policy_rule: NeverNull[str]
    budget_snapshot: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(BudgetSnapshot)]
    revocation_epoch: NeverNull[int]
    plan_hash: str
    quorum: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ApprovalQuorum)] = LEFT_OUT
    """The approvals that the call needs; absent where one is enough. Fixed when the call was held."""
    shown_hash: str | None
    """`sha256:<hex>` of the canonical form (RFC 8785) of every member but this one, `state`, `status` and those that
    follow here: what an operator signs to have seen. Null where a number of the request has no canonical form, and once
    the request is not kept any more: a signature names it."""
    claimed_by: str | None = None
    """The operator who decided. Null, like all that follows, as long as there is nothing to say."""
    claimed_at: str | None = None
    completed_at: str | None = None
    receipt_id: str | None = None
    deny_reason: str | None = None
    error_code: str | None = None
    approval_signature: str | None = None
    """The operator's own signature of the decision."""
    approvals: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ApprovalCount)] = LEFT_OUT
    """The count for a call that needs several approvals."""
    caps: Annotated[tuple[Mapping[str, Any], ...], NEVER_NULL, shown_as(CapOfCall)] = LEFT_OUT
    """The caps that the call counts for, as they stand now. Absent without one, and once the call has been opened or
    has ended."""


class Denied(Noun, frozen=True, kw_only=True):
    """The call will not run."""

    decision: Literal["deny"] = "deny"
    trace_id: str
    action_id: str
    approval_id: str
    denied_by: str
    deny_reason: str | None
