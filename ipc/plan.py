"""The plan: everything that decides what one call will do, frozen before it runs.

Built in one place (frontend/actions/planning.py) and encoded once: the same bytes are hashed, sent to the worker,
stored with an approval and checked again. The grant signs their hash. A new field is part of them without being listed.
"""

import hashlib
from functools import cached_property

import msgspec
from msgspec import UNSET, UnsetType

from ipc.configuration.networks import PlanNetwork
from ipc.configuration.secret_ways import AnySecretWay
from ipc.evidence.kept_values import KeptRules


class CallLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Resource limits of one call (manifest `resource_limits`)."""

    fuel: int = 10_000_000
    memory_mb: int = 64
    timeout_seconds: float = 30.0
    max_io_calls: int = 10


class PlanEgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the http host call may go. `profile`: none, direct_allowlist or proxy_allowlist."""

    profile: str = "none"
    allowed_domains: tuple[str, ...] = ()
    """Lower case names; `*.` before at least two labels matches any name below."""
    allowed_methods: tuple[str, ...] = ()
    proxy_url: str | None = None
    unsafe_resolve: dict[str, str] = {}
    """Dev only: name -> `address:port` to connect to instead of resolving."""
    proxy_patience_seconds: int = 0
    """For so long a proxy may refuse an unresolved domain because it has not read its list again: with live sync that
    list has the domain while a person's approval lets this plan run."""
    proxy_secret: str | None = None
    """Name of the secret, `user:password`, that the proxy is shown; it is among the plan's secrets, without a way."""
    networks: tuple[PlanNetwork, ...] = ()
    """Private networks that names of this plan lead into, and nowhere else; names of no network lead to public
    addresses alone."""


MAX_TOTAL_BYTES, MAX_FILES = 4 << 30, 100_000
"""Below the root of an action that does not say otherwise."""


class FileAccess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the fs host call. Paths are relative to `root`; globs match per segment, `**` any depth."""

    root: str
    """Absolute path of the folder that is the provider's `/`."""
    allowed_operations: tuple[str, ...] = ()
    """Some of: read, write, append, list, stat, delete."""
    allowed_paths: tuple[str, ...] = ()
    denied_paths: tuple[str, ...] = ()
    max_file_bytes: int = 1_048_576
    max_total_bytes: int = MAX_TOTAL_BYTES
    """The sum over all files below the root."""
    max_files: int = MAX_FILES
    """Files and folders below the root."""


class SecretUse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A declared secret by name, and the way in which the host adds it to the outgoing request. Never the value."""

    name: str
    required: bool = True
    way: AnySecretWay | None = None
    domains: tuple[str, ...] = ()
    """Hosts whose requests it is added to; written as `PlanEgress.allowed_domains` are. Empty: to no request."""


class PlannedTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tool of an MCP server that a request calls. The host calls it only while the server lists it as pinned."""

    name: str
    digest: str
    """`tool_digest` of ipc/mcp_tools.py."""


class ResponseRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of an upstream's answer that a result has besides its status (manifest `response`)."""

    headers: tuple[str, ...] = ()
    """Names as the result has them; an answer may write them in other letters."""
    pick: dict[str, str] = {}
    """Member of the result's body -> JSON pointer into the answer's body. Empty: the whole body."""


INTENT_ID = "<intent id>"
"""Stands in a planned request for the id of the call's intent, which is made after the plan."""


class PlannedRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one HTTP request that a templated action will send; the host call refuses any other.

    `headers` are those of the template, without secrets; `body` is None when the template has none.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    response: ResponseRules | UnsetType = UNSET
    idempotency_header: str | UnsetType = UNSET
    """The header whose value, INTENT_ID, the worker replaces."""
    tool: PlannedTool | UnsetType = UNSET
    """Given where the request calls a tool of an MCP server: `body` is the call's message."""


class UndecidedPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call as its request, its action and its lease make it: policy has not decided yet."""

    action_id: str
    action_version: str
    risk_level: str
    provider_module_digest: str
    """`sha256:<hex>` of the module's bytes."""
    required_imports: tuple[str, ...]
    profile: str
    """Worker profile: compute, http or fs."""
    isolation: str
    """`shared` beside calls of its action, `pooled` alone in a worker of many calls, `process` in a fresh one."""
    principal: str
    owner: str | None
    session_id: str
    scopes: tuple[str, ...]
    lease_jti: str
    epoch: int
    request: str
    """Canonical JSON text (RFC 8785) of the request, after null-dropping."""
    request_hash: str
    """`sha256:<hex>` of `request` in UTF-8."""
    provider_input: str
    """JSON text handed to the provider's `run`."""
    limits: CallLimits
    egress: PlanEgress
    files: FileAccess | None
    http_request: PlannedRequest | None
    secrets: tuple[SecretUse, ...]
    targets: tuple[str, ...]
    """For people and policy: `METHOD url` or `fs:<operation> <path>`."""
    sinks: tuple[str, ...]
    unresolved_domains: tuple[str, ...]
    unresolved_paths: tuple[str, ...]
    verifier_kind: str
    verification_config: str
    """JSON text of the manifest's `verification_config`."""
    response_schema: str | None
    """JSON text of the response schema, or None."""
    enforce_response_schema: bool
    max_response_bytes: int


class Plan(UndecidedPlan, frozen=True, forbid_unknown_fields=True):
    """The same after the decision, complete. Built by the front, executed by a worker, never re-derived."""

    trace_id: str
    policy_version: str
    policy_rule: str
    calls_remaining: int | None
    """Budget snapshot when policy was asked; None for a lease without budgets."""
    created_at: str
    """ISO 8601 UTC, milliseconds, `Z`."""
    kept: KeptRules | UnsetType = UNSET
    """The values of the request that evidence keeps; absent where it keeps none."""
    policy_input: str = "{}"
    """JSON text of the values of the request that policy was asked about, by pointer (manifest `policy_input`)."""


class SealedPlan(msgspec.Struct, frozen=True, dict=True):
    """A plan and its bytes: JSON, every struct and map in sorted key order."""

    plan: Plan
    encoded: bytes

    @cached_property
    def digest(self) -> str:
        """The plan's hash, over every field; computed once."""
        return hash_of(self.encoded)


_encoder = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(Plan)


def seal(plan: Plan) -> SealedPlan:
    """Encode the plan: the only place where its bytes are made."""
    return SealedPlan(plan, _encoder.encode(plan))


def unseal(encoded: bytes) -> SealedPlan:
    """The plan of these bytes, and the bytes as they are. Raises ValueError if they are not a plan."""
    return SealedPlan(decode_plan(encoded), encoded)


def decode_plan(encoded: bytes) -> Plan:
    """The plan of these bytes. Raises ValueError if they are not a plan."""
    try:
        return _decoder.decode(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a plan: {error}") from None


def hash_of(encoded: bytes) -> str:
    """`sha256:<hex>` of a plan's bytes."""
    return "sha256:" + hashlib.sha256(encoded).hexdigest()
