"""The access lists as operators see them (docs/contract.md, "Policy ACL")."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from .noun import NEVER_NULL, NeverNull, Noun, shown_as


class AclEntryView(Noun, frozen=True, kw_only=True):
    """The rights of one principal."""

    actions: tuple[str, ...]
    sinks: tuple[str, ...]
    """The declared side effects of its actions."""
    inherits_wildcard: NeverNull[bool]
    """Whether what the entry `*` allows is allowed too."""


class ExplainedCall(Noun, frozen=True, kw_only=True):
    """How the call would be decided now."""

    principal: str
    action_id: str
    decision: Literal["allow", "deny", "pending_approval"]
    error_code: str | None
    """The code that a refusal would have; null without a refusal."""
    rule: str | None
    """Which rule of the policy decides; null where the call is refused before policy is asked."""
    reason: str | None
    """Why it is refused."""
    policy_version: str | None
    request_hash: str | None
    """`sha256:<hex>`, as events have it."""
    assumed: tuple[str, ...]
    """Facts that only a real call would show."""


class LegacyAclEntry(Noun, frozen=True, kw_only=True):
    """The same under the names that some clients read."""

    allowed_actions: tuple[str, ...]
    allowed_sinks: tuple[str, ...]


class Acl(Noun, frozen=True, kw_only=True):
    """All that the data of the policy in force says."""

    policy_version: str
    principals: Mapping[str, AclEntryView]
    """By principal; `*` stands for principals without an entry."""
    acl: NeverNull[Mapping[str, LegacyAclEntry]]
    allowlist: NeverNull[Mapping[str, tuple[str, ...]]]
    """Action -> the agents that need no approval for it."""
    denied_actions: NeverNull[Mapping[str, str]]
    """Action -> why no call of it is allowed."""


class RiskBreakdown(msgspec.Struct, frozen=True, kw_only=True):
    """Actions by risk level. An action that is not registered is left out."""

    low: tuple[str, ...]
    medium: tuple[str, ...]
    high: tuple[str, ...]
    critical: tuple[str, ...]


class PrincipalAcl(AclEntryView, frozen=True, kw_only=True):
    """One principal's entry after a change. Without an entry: nothing of its own."""

    principal: str
    policy_version: NeverNull[str]


class PrincipalView(PrincipalAcl, frozen=True, kw_only=True):
    """One principal's entry."""

    risk_breakdown: Annotated[Mapping[str, tuple[str, ...]] | None, NEVER_NULL, shown_as(RiskBreakdown)]


class Allowlisted(Noun, frozen=True, kw_only=True):
    """In force for the next call."""

    ok: Literal[True] = True
    action_id: str
    agent_id: str
    policy_version: NeverNull[str]
