"""Held calls: polled by agents; listed, read and decided by operators (docs/decisions/approvals.md, "Approvals")."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from frontend.contract.actions import ResourceLimits, RiskLevel
from frontend.contract.forms import Body, Moment, Query

State = Literal["pending", "claimed", "approved", "denied", "expired", "failed"]
ListedState = Literal["pending", "claimed", "approved", "denied", "failed"]
PolledState = Literal["pending", "claimed", "approved", "denied", "expired"]
PolledStatus = Literal["pending", "approved", "denied", "expired", "failed"]
DEFAULT_LIST, MAX_LIST = 50, 200


class ApprovalQuery(Query, frozen=True, kw_only=True):
    """Which approvals to list."""

    status: ListedState | None = None
    """Only those in this state; all when omitted."""
    principal: str | None = None
    """Only those of this principal."""
    action_id: str | None = None
    """Only calls of this action."""
    before: Moment | None = None
    """Only those created before this time: for the next page, that of the last item."""
    limit: Annotated[int, Meta(ge=1, le=MAX_LIST)] = DEFAULT_LIST
    """How many at most, the newest first."""
    group: Literal["principal"] | None = None
    """`principal`: the newest of each principal are chosen, then the second of each, and so on, so that no principal
    hides another's."""


class ApprovalDetailQuery(Query, frozen=True, kw_only=True):
    """Which approval to show."""

    ended: Literal["true"] | None = None
    """`true`: one that has expired, too, as long as it is kept."""


class ApproveQuery(Query, frozen=True, kw_only=True):
    """What to learn from the call, once it has gone well. It must match what the call waits for."""

    learn_domain: str | None = None
    """A domain, or `*.` and a domain, that the action may reach from then on."""
    learn_path: str | None = None
    """A path pattern that the action may touch from then on."""


class ApproveRequest(Body, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """An approval needs no body, unless signatures are required; what else a client sends is not kept."""

    signature: str | None = None
    """The operator's own signature of this decision: a compact JWS of the `typ` `approval+jws`."""


class DenyRequest(Body, frozen=True, kw_only=True):
    """Why a call is denied."""

    reason: str | None = None
    """Shown to the agent; control characters are stripped, and it is cut to 500 characters."""
    signature: str | None = None
    """The operator's own signature of this decision: a compact JWS of the `typ` `approval+jws`."""


class ApprovalPoll(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent hears of its held call."""

    approval_id: str
    action_id: str
    state: PolledState
    status: PolledStatus
    """As `state`, but `pending` while an operator's decision is being carried out, and `failed` with that `outcome`."""
    outcome: Literal["failed"] | UnsetType = UNSET
    """Present when an approved call could not be carried out."""
    receipt_id: str | UnsetType = UNSET
    """The receipt of the call, once it was approved and ran."""
    deny_reason: str | UnsetType | None = UNSET
    """Once it was denied: what the operator said, or null."""
    reason: str | UnsetType | None = UNSET
    """Once it was denied: the same. With the `outcome` failed: the error code."""
    retry_after_seconds: int | UnsetType = UNSET
    """While nothing is decided: when to ask again."""


class ApprovalItem(msgspec.Struct, frozen=True, kw_only=True):
    """What every approval has. Null is what an unreadable plan can't tell."""

    approval_id: str
    action_id: str
    action_version: str | None
    state: State
    status: PolledStatus
    principal: str | None
    session_id: str
    owner: str | None
    risk_level: RiskLevel | None
    request_hash: str
    """`sha256:<hex>` of the canonical request."""
    created_at: str
    expires_at: str


class ListedApproval(ApprovalItem, frozen=True, kw_only=True):
    """One approval in the operator's list, with what came of it. Null is what there is nothing to say of."""

    claimed_by: str | None = None
    """The operator who decided."""
    receipt_id: str | None = None
    """The receipt of the call, once it was approved and ran."""
    deny_reason: str | None = None
    error_code: str | None = None
    """Why an approved call did not come to its end."""


class ApprovalList(msgspec.Struct, frozen=True, kw_only=True):
    """Approvals, the newest first."""

    approvals: list[ListedApproval]
    count: int
    """How many are listed here."""
    total: int
    """How many match the filters."""


class ApprovedEgress(msgspec.Struct, frozen=True, kw_only=True):
    """Where the call may connect to."""

    profile: Literal["none", "direct_allowlist", "proxy_allowlist"]
    allowed_domains: list[str]
    allowed_methods: list[str]


class ApprovedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the call may do with files, all of it."""

    allowed_operations: list[str]
    allowed_paths: list[str]
    denied_paths: list[str]
    max_file_bytes: int
    max_total_bytes: int
    max_files: int


class ApprovedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The one HTTP request that the call will send, without secrets."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: str | None


class BudgetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What was left of the session's budget when policy was asked."""

    calls_remaining: int | None
    """Null for a lease without budget."""


class ApprovalDetail(ApprovalItem, frozen=True, kw_only=True):
    """Everything an operator must see before deciding. Once it has ended, the request is kept for a time that the
    gateway's operator sets, and then no more, nor what the request has filled in: `request`, `request_json`,
    `approved_request` and `shown_hash` are null then, `approved_targets` end with the host, and `unresolved_paths` is
    empty. In strings that an agent chose, characters that could hide or disguise something are `\\uXXXX`, and a
    backslash is two: no two texts are shown alike."""

    trace_id: str
    description: str | UnsetType = UNSET
    """The action's description when the call was held. Absent where it had none, and of holds of an earlier version."""
    request: Any
    """The canonical request, exactly as it will be executed. Null once it is not kept any more."""
    request_json: str | None
    """The same as one text of JSON in ASCII. Null once it is not kept any more."""
    approved_targets: list[str]
    """What it touches: `METHOD url`, or `fs:<operation> <path>`."""
    approved_request: ApprovedRequest | None
    """Null for an action that sends no HTTP request by template, and once it is not kept any more."""
    approved_secrets: list[str]
    """Names; never values."""
    secret_domains: dict[str, list[str]]
    """By name of a secret that is added to requests: the hosts whose requests it is added to."""
    approved_egress: ApprovedEgress
    approved_files: ApprovedFiles | None
    """Null for an action without files."""
    unresolved_domains: list[str]
    """Hosts that no rule of the action allows yet."""
    unresolved_paths: list[str]
    """Paths that no rule of the action allows yet."""
    sinks: list[str]
    verifier_kind: str
    provider_module_digest: str
    resource_limits: ResourceLimits
    policy_version: str
    policy_rule: str
    budget_snapshot: BudgetSnapshot
    revocation_epoch: int
    plan_hash: str
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


class Denied(msgspec.Struct, frozen=True, kw_only=True):
    """The call will not run."""

    decision: Literal["deny"] = "deny"
    trace_id: str
    action_id: str
    approval_id: str
    denied_by: str
    deny_reason: str | None
