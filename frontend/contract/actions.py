"""Discovery: what an action is and takes (docs/contract.md, "Action summary" and "Action manifest")."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

RiskLevel = Literal["low", "medium", "high", "critical"]


class ActionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the list of actions."""

    action_id: str
    version: str
    """Semantic version."""
    risk_level: RiskLevel
    description: str
    database_mode: None
    """Always null; reserved."""


class ActionsEnvelope(msgspec.Struct, frozen=True):
    """The list of actions where `compat.actions_envelope` is set."""

    actions: list[ActionSummary]


class ResourceLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one call may use up; going over it is 502 `action_execution_failed`."""

    fuel: int
    """Units of computation, about one a WebAssembly instruction."""
    memory_mb: int
    timeout_seconds: float
    """Wall clock."""
    max_io_calls: int


class ActionIo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request and of an output."""

    has_request_schema: bool
    has_response_schema: bool
    max_request_bytes: int
    max_response_bytes: int


class AllowList(msgspec.Struct, frozen=True):
    """Hosts that an action may speak to."""

    allowed_domains: list[str]


class Egress(msgspec.Struct, frozen=True, kw_only=True):
    """Where an action may connect to."""

    profile: Literal["none", "direct_allowlist", "proxy_allowlist"]
    allowed_domains: list[str]
    proxy_allowlist: AllowList | UnsetType = UNSET
    """Restricted egress, whatever enforces it; absent where there is no egress at all."""


class DeclaredSecret(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that the gateway adds to a call. Its value never leaves the gateway."""

    name: str
    required: bool


class ActionManifest(ActionSummary, frozen=True, kw_only=True):
    """Everything that an agent may know of an action."""

    tags: list[str]
    provider_module: str
    """The module as the manifest names it: `sha256:<hex>` or `builtin:<name>`."""
    provider_module_digest: str
    """`sha256:<hex>` of the module's bytes."""
    required_imports: list[str]
    required_scopes: list[str]
    resource_limits: ResourceLimits
    request_schema: Any
    """JSON Schema of the request; null where the action declares none."""
    response_schema: Any
    """JSON Schema of the output; null where the action declares none."""
    io: ActionIo
    egress: Egress
    secrets: list[DeclaredSecret]
    declared_side_effects: list[str]
    sinks: list[str]
    """What policy grants: derived from the declared side effects."""
    verifier_kind: str
    isolation: Literal["shared", "pooled", "process"]
    """Whether a call has a worker process for itself, its own or one of a pool, or runs beside calls of this action."""
