"""What operators get back of calls about what agents may do: epoch, configuration, learned rules, policy.

The rules are those of gateway_client/results.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class Revoked:
    """Leases and grants of `previous_epoch` and before are dead."""

    previous_epoch: int
    current_epoch: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """The revocation epoch in force."""

    current_epoch: int
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Reloaded:
    """Manifests, policy, operators and principals that are in force now. `changed` and `needs_restart` name settings:
    those that came into force, and those that have changed in the configuration file and wait for a restart."""

    manifests_loaded: int
    policy_reloaded: bool
    reloaded_at: str
    actions: Any = None
    policy_version: str | None = None
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LearnedDomain:
    """A domain that joins an action's allow-list. `source`: approval or cli."""

    domain: str
    action_id: str
    source: str | None = None
    added_at: str | None = None
    added_by: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class LearnedPath:
    """A path that joins an action's allowed paths."""

    path: str
    action_id: str
    source: str | None = None
    added_at: str | None = None
    added_by: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Removed:
    """What a removal came to."""

    removed: bool
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Cleared:
    """What was learned is forgotten; `count` of them."""

    cleared: bool
    count: int | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class AclEntry:
    """What one principal may do. `sinks` follow from the actions' manifests."""

    actions: tuple[str, ...]
    sinks: tuple[str, ...]
    inherits_wildcard: bool | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Acl:
    """The whole access list, by principal."""

    policy_version: str
    principals: Mapping[str, AclEntry]
    allowlist: Mapping[str, tuple[str, ...]] | None = None
    """Action id to the agents that need no approval for it."""
    denied_actions: Mapping[str, str] | None = None
    """Action id to the reason why every principal is denied it."""
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class PrincipalAcl:
    """One principal; `risk_breakdown` (action ids by risk level) only where it was asked for by name."""

    principal: str
    actions: tuple[str, ...]
    sinks: tuple[str, ...]
    inherits_wildcard: bool | None = None
    """Whether what the entry `*` allows is allowed too."""
    risk_breakdown: Mapping[str, tuple[str, ...]] | None = None
    policy_version: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ExplainedCall:
    """What would come of a call: `decision` is allow, deny or pending_approval. Without `rule` policy is not asked;
    `error_code` is that of a refusal; `assumed` says what only a real call would show."""

    principal: str
    action_id: str
    decision: str
    assumed: tuple[str, ...]
    error_code: str | None = None
    rule: str | None = None
    reason: str | None = None
    policy_version: str | None = None
    request_hash: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Allowlisted:
    """A pair that needs no approval from now on, or needs it again."""

    action_id: str
    agent_id: str
    policy_version: str | None = None
    raw: Raw = field(repr=False)
