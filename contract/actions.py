"""Discovery: what an action is and takes (docs/contract.md, "Action summary" and "Action manifest")."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from .noun import NEVER_NULL, Listed, NeverNull, Noun, shown_as

RiskLevel = Literal["low", "medium", "high", "critical"]


class ActionSummary(Noun, frozen=True, kw_only=True):
    """One item of the list of actions."""

    action_id: str
    version: str
    """Semantic version."""
    risk_level: RiskLevel
    description: Annotated[str, NEVER_NULL]
    database_mode: None
    """Always null; reserved."""


class ActionsEnvelope(Noun, frozen=True, kw_only=True):
    """The list of actions where `compat.actions_envelope` is set."""

    actions: tuple[ActionSummary, ...]


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one call; going over it is 502 `action_execution_failed`."""

    fuel: int
    """Units of computation, about one a WebAssembly instruction."""
    memory_mb: int
    timeout_seconds: float
    """Wall clock."""
    max_io_calls: int


class ActionIo(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas and bounds of requests and outputs."""

    has_request_schema: bool
    has_response_schema: bool
    max_request_bytes: int
    max_response_bytes: int


class AllowList(msgspec.Struct, frozen=True, kw_only=True):
    """Hosts that an action may speak to."""

    allowed_domains: tuple[str, ...]


class Egress(msgspec.Struct, frozen=True, kw_only=True):
    """Where an action may connect to."""

    profile: Literal["none", "direct_allowlist", "proxy_allowlist"]
    allowed_domains: tuple[str, ...]
    proxy_allowlist: AllowList | UnsetType = UNSET
    """Restricted egress, whatever enforces it; absent where there is no egress at all."""


class DeclaredSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that the gateway adds to a call. Its value never leaves the gateway."""

    name: str
    required: bool


class ActionManifest(ActionSummary, frozen=True, kw_only=True):
    """Everything that an agent may know of an action."""

    tags: Listed[str]
    provider_module: NeverNull[str]
    """The module as the manifest names it: `sha256:<hex>` or `builtin:<name>`."""
    provider_module_digest: NeverNull[str]
    """`sha256:<hex>` of the module's bytes."""
    required_imports: Listed[str]
    required_scopes: Listed[str]
    resource_limits: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ResourceLimits)]
    request_schema: Any
    """JSON Schema of the request; null where the action declares none."""
    response_schema: Any
    """JSON Schema of the output; null where the action declares none."""
    io: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(ActionIo)]
    egress: Annotated[Mapping[str, Any] | None, NEVER_NULL, shown_as(Egress)]
    secrets: Annotated[tuple[Any, ...], NEVER_NULL, shown_as(DeclaredSecret)]
    declared_side_effects: Listed[str]
    sinks: Listed[str]
    """The sinks that policy grants: derived from the declared side effects."""
    policy_input: Listed[str]
    """JSON pointers of the values of a request that policy, thresholds and caps may decide by."""
    verifier_kind: NeverNull[str]
    isolation: NeverNull[Literal["shared", "pooled", "process"]]
    """Whether a call has a worker process for itself, its own or one of a pool, or runs beside calls of this action."""
