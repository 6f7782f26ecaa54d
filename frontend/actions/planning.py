"""The one place that builds a Plan: first a Draft, from which policy is asked; after the decision, the plan itself.

Guarantees that policy's question, the provider's input and the planned request come from the same accepted request,
and that what an operator will be shown is what will run. Decides nothing.
"""

from typing import Any

import msgspec

from frontend.actions.registry import Action
from frontend.actions.targets import NOTHING_LEARNED, Learned, targets_of
from frontend.auth.lease import Lease
from frontend.errors import GateError
from ipc.canonical import canonical_bytes, sha256_hex
from ipc.plan import Egress, FileAccess, Plan, PlannedRequest, SecretUse
from ipc.settings import Settings

PROXIED = "proxy_allowlist"
PROXY_PATIENCE_SECONDS = 10
"""What a proxy may take to read its list again; the path unit of contrib/squid takes well under a second."""


class Draft(msgspec.Struct, frozen=True):
    """Everything about a call that is known before the decision."""

    action: Action
    request: str
    """Canonical JSON text (RFC 8785) after null-dropping."""
    request_hash: str
    provider_input: str
    principal: str
    owner: str | None
    session_id: str
    scopes: tuple[str, ...]
    lease_jti: str
    calls_remaining: int | None
    epoch: int
    targets: tuple[str, ...]
    sinks: tuple[str, ...]
    http_request: PlannedRequest | None
    fs_path: str | None
    unresolved_domains: tuple[str, ...]
    unresolved_paths: tuple[str, ...]
    egress: Egress
    files: FileAccess | None
    enforce_response_schema: bool
    has_live_sync: bool
    """It would go through a proxy whose list the gateway writes."""


def draft(
    action: Action, body: Any, lease: Lease, calls_remaining: int | None, epoch: int,
    learned: Learned = NOTHING_LEARNED, *, settings: Settings,
) -> Draft:  # fmt: skip
    """What a parsed body would do. `calls_remaining` is the budget snapshot, None for a lease without budgets.

    Raises GateError: schema_violation, body_too_large (the action's own max_request_bytes), policy_denied.
    """
    accepted = action.accept(body)
    request = canonical_bytes(accepted)
    if len(request) > action.max_request_bytes:
        raise GateError("body_too_large", cause="max_request_bytes of the action")
    text = request.decode()
    touched = targets_of(action, accepted, learned, settings.files_folder)
    return Draft(
        action=action,
        request=text,
        request_hash=sha256_hex(request),
        provider_input=text if touched.http_request is None else _templated_input(text, touched.http_request),
        principal=lease.principal,
        owner=lease.owner,
        session_id=lease.session_id,
        scopes=lease.scopes,
        lease_jti=lease.jti,
        calls_remaining=calls_remaining,
        epoch=epoch,
        targets=touched.targets,
        sinks=touched.sinks,
        http_request=touched.http_request,
        fs_path=touched.fs_path,
        unresolved_domains=touched.unresolved_domains,
        unresolved_paths=touched.unresolved_paths,
        egress=_egress(action, learned, settings),
        files=touched.files,
        enforce_response_schema=settings.response_schema_enforcement == "deny",
        has_live_sync=action.egress_profile == PROXIED and settings.egress.proxy_allowlist_file is not None,
    )


def build_plan(
    drafted: Draft, trace_id: str, policy_version: str, policy_rule: str, created_at: str, *, is_held: bool = False
) -> Plan:
    """The plan of a drafted call, after policy has decided. `is_held`: the plan waits for a person's approval."""
    action = drafted.action
    manifest = action.manifest
    egress, files = _with_unresolved(drafted) if is_held else (drafted.egress, drafted.files)
    return Plan(
        trace_id=trace_id,
        action_id=action.action_id,
        action_version=action.version,
        risk_level=action.risk_level,
        provider_module_digest=action.digest,
        required_imports=manifest.required_imports,
        profile=action.profile,
        isolation=manifest.isolation,
        principal=drafted.principal,
        owner=drafted.owner,
        session_id=drafted.session_id,
        scopes=drafted.scopes,
        lease_jti=drafted.lease_jti,
        request=drafted.request,
        request_hash=drafted.request_hash,
        provider_input=drafted.provider_input,
        limits=action.limits,
        egress=egress,
        files=files,
        http_request=drafted.http_request,
        secrets=_secrets(action, egress),
        targets=drafted.targets,
        sinks=drafted.sinks,
        unresolved_domains=drafted.unresolved_domains,
        unresolved_paths=drafted.unresolved_paths,
        verifier_kind=manifest.verifier_kind,
        verification_config=action.verification_config,
        response_schema=action.response_schema,
        enforce_response_schema=drafted.enforce_response_schema,
        max_response_bytes=manifest.io.max_response_bytes,
        policy_version=policy_version,
        policy_rule=policy_rule,
        calls_remaining=drafted.calls_remaining,
        epoch=drafted.epoch,
        created_at=created_at,
    )


def _with_unresolved(drafted: Draft) -> tuple[Egress, FileAccess | None]:
    """The lists of a plan that waits for a person, with what is unresolved.

    SECURITY: only there does it become allowed, since a person is shown it and approves exactly it. In a plan
    without review it stays outside the lists, and the host call refuses it.
    """
    egress, files = drafted.egress, drafted.files
    if drafted.unresolved_domains:
        domains = egress.allowed_domains + drafted.unresolved_domains
        patience = PROXY_PATIENCE_SECONDS if drafted.has_live_sync else 0
        egress = msgspec.structs.replace(egress, allowed_domains=domains, proxy_patience_seconds=patience)
    if files is not None and drafted.unresolved_paths:
        files = msgspec.structs.replace(files, allowed_paths=files.allowed_paths + drafted.unresolved_paths)
    return egress, files


def _templated_input(request: str, planned: PlannedRequest) -> str:
    """JSON text `{"call": …, "request": …}`: a provider sends `call` as it stands."""
    return f'{{"call":{msgspec.json.encode(planned).decode()},"request":{request}}}'


def _egress(action: Action, learned: Learned, settings: Settings) -> Egress:
    if action.egress_profile == "none":
        return _NO_EGRESS
    return Egress(
        profile=action.egress_profile,
        allowed_domains=action.allowed_domains + learned.domains,
        allowed_methods=action.allowed_methods,
        proxy_url=settings.egress_proxy_url if action.egress_profile == PROXIED else None,
        proxy_secret=settings.egress.proxy_secret if action.egress_profile == PROXIED else None,
        unsafe_resolve=settings.egress.unsafe_resolve,
    )


def _secrets(action: Action, egress: Egress) -> tuple[SecretUse, ...]:
    """Those of the manifest, and what the proxy is shown: only a worker that goes through it is given that."""
    shown = () if egress.proxy_secret is None else (SecretUse(egress.proxy_secret),)
    return action.secrets + shown


_NO_EGRESS = Egress()
