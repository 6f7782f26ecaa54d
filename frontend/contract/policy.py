"""Who may do what, as operators see and change it (docs/contract.md, "Policy ACL")."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from frontend.contract.forms import Body

MAX_ACTIONS = 256
"""Action ids in one change."""

# Notes for readers only: what does not fit is `invalid_input`, which frontend/api/handlers/policies.py answers.
ActionId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,255}$"})]
AgentId = Annotated[str, Meta(extra_json_schema={"pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,255}$"})]
PrincipalId = Annotated[str, Meta(extra_json_schema={"pattern": "^(\\*|[A-Za-z0-9][A-Za-z0-9._:@-]{0,255})$"})]
ActionIds = Annotated[list[ActionId], Meta(extra_json_schema={"minItems": 1, "maxItems": MAX_ACTIONS})]


class AclEntryView(msgspec.Struct, frozen=True, kw_only=True):
    """What one principal may do."""

    actions: list[str]
    sinks: list[str]
    """What its actions declare as side effects."""
    inherits_wildcard: bool
    """Whether what the entry `*` allows is allowed too."""


class CallToExplain(Body, frozen=True, kw_only=True):
    """A call that is not made."""

    principal: AgentId
    action_id: ActionId
    request: dict[str, Any] | None = None
    """What it would be asked to do; without it an empty object."""
    calls_remaining: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """What its session would have left; without it calls are not counted."""


class ExplainedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What would come of it now."""

    principal: str
    action_id: str
    decision: Literal["allow", "deny", "pending_approval"]
    error_code: str | None
    """The code that a refusal would have; null where it is none."""
    rule: str | None
    """Which rule of the policy decides; null where the call is refused before policy is asked."""
    reason: str | None
    """Why it is refused."""
    policy_version: str | None
    request_hash: str | None
    """`sha256:<hex>`, as events have it."""
    assumed: list[str]
    """What only a real call would show."""


class LegacyAclEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The same under the names that some clients read."""

    allowed_actions: list[str]
    allowed_sinks: list[str]


class Acl(msgspec.Struct, frozen=True, kw_only=True):
    """All that the data of the policy in force says."""

    policy_version: str
    principals: dict[str, AclEntryView]
    """By principal; `*` stands for principals without an entry."""
    acl: dict[str, LegacyAclEntry]
    allowlist: dict[str, list[str]]
    """Action -> the agents that need no approval for it."""
    denied_actions: dict[str, str]
    """Action -> why no call of it is allowed."""


class RiskBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Actions by risk level. One that is not registered stands nowhere."""

    low: list[str]
    medium: list[str]
    high: list[str]
    critical: list[str]


class PrincipalAcl(AclEntryView, frozen=True, kw_only=True):
    """One principal's entry after a change. Without an entry: nothing of its own."""

    principal: str
    policy_version: str


class PrincipalView(PrincipalAcl, frozen=True, kw_only=True):
    """One principal's entry."""

    risk_breakdown: RiskBreakdown


class PrincipalActions(Body, frozen=True, kw_only=True):
    """Actions of a principal."""

    principal: PrincipalId
    actions: ActionIds


class AllowlistPair(Body, frozen=True, kw_only=True):
    """An action, and an agent that needs no approval for it."""

    refused_as = "invalid_input"  # docs/contract.md, "Admin socket"
    action_id: ActionId
    agent_id: AgentId


class Allowlisted(msgspec.Struct, frozen=True, kw_only=True):
    """In force for the next call."""

    ok: Literal[True] = True
    action_id: str
    agent_id: str
    policy_version: str
