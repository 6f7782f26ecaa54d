"""The one place that builds a Plan: first a Draft, from which policy is asked; after the decision, the plan itself.

Guarantees that policy's question, the provider's input and the planned request come from the same accepted request,
and that an operator is shown the plan that will run. Decides nothing.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from frontend.actions.networks import planned_networks
from frontend.actions.registry import Action
from frontend.actions.targets import NOTHING_LEARNED, Learned, Targets, targets_of
from frontend.auth.lease import Lease
from frontend.errors import GateError
from ipc.configuration.identity_origin import UNKNOWN, IdentityOrigin
from ipc.evidence.kept_values import KeptValues, values_of
from ipc.plan import Plan, PlanEgress, PlannedRequest, SecretUse, UndecidedPlan
from ipc.settings import Settings
from ipc.texts.canonical import canonical_bytes, sha256_hex
from ipc.texts.pointers import NotScalar, Values, values_at

PROXIED = "proxy_allowlist"
PROXY_PATIENCE_SECONDS = 10
"""A proxy reads its list again within this time; the path unit of contrib/squid takes well under a second."""


class Draft(msgspec.Struct, frozen=True):
    """Everything about a call that is known before the decision."""

    action: Action
    plan: UndecidedPlan
    fs_path: str | None
    """The path that the request names, for policy."""
    has_live_sync: bool
    """The call would go through a proxy whose list the gateway writes."""
    kept: KeptValues | None = None
    """The values of the request that evidence keeps."""
    values: Values = {}
    """The values of the request at the pointers of the manifest's `policy_input`."""
    origin: IdentityOrigin = UNKNOWN
    """How the caller is known, for policy."""
    policy_input: str = "{}"
    """The same as canonical JSON text: what policy is asked about and the plan keeps."""


def draft(
    action: Action, body: Any, lease: Lease, epoch: int, learned: Learned = NOTHING_LEARNED, *, settings: Settings
) -> Draft:
    """Return the draft of a call with this parsed body.

    Raises GateError: schema_violation, body_too_large (the action's own max_request_bytes), policy_denied.
    """
    accepted = action.accept(body)
    request = canonical_bytes(accepted)
    if len(request) > action.max_request_bytes:
        raise GateError("body_too_large", cause="max_request_bytes of the action")
    text = request.decode()
    touched = targets_of(action, accepted, learned, settings)
    manifest = action.manifest
    egress = _egress(action, learned, touched, settings)
    plan = UndecidedPlan(
        action_id=action.action_id,
        action_version=action.version,
        risk_level=action.risk_level,
        provider_module_digest=action.digest,
        required_imports=manifest.required_imports,
        profile=action.profile,
        isolation=manifest.isolation,
        principal=lease.principal,
        owner=lease.owner,
        session_id=lease.session_id,
        scopes=lease.scopes,
        lease_jti=lease.jti,
        epoch=epoch,
        request=text,
        request_hash=sha256_hex(request),
        provider_input=text if touched.http_request is None else _templated_input(text, touched.http_request),
        limits=action.limits,
        egress=egress,
        files=touched.files,
        http_request=touched.http_request,
        secrets=_secrets(action, egress),
        targets=touched.targets,
        sinks=touched.sinks,
        unresolved_domains=touched.unresolved_domains,
        unresolved_paths=touched.unresolved_paths,
        verifier_kind=manifest.verifier_kind,
        verification_config=action.verification_config,
        response_schema=action.response_schema,
        enforce_response_schema=settings.response_schema_enforcement == "deny",
        max_response_bytes=manifest.io.max_response_bytes,
    )
    has_live_sync = action.egress_profile == PROXIED and settings.egress.proxy_allowlist_file is not None
    drafted = Draft(
        action, plan, touched.fs_path, has_live_sync, values_of(manifest.kept, accepted),
        origin=lease.origin,
    )  # fmt: skip
    return _with_values(drafted, accepted) if manifest.policy_input else drafted


def build_plan(
    drafted: Draft, trace_id: str, policy_version: str, policy_rule: str, calls_remaining: int | None, created_at: str,
    *, is_held: bool = False,
) -> Plan:  # fmt: skip
    """The plan of a drafted call, after policy has decided.

    `calls_remaining` is the budget snapshot, None for a lease without budgets. `is_held`: the plan waits for a person's
    approval.
    """
    undecided = _with_unresolved(drafted) if is_held else drafted.plan
    known = msgspec.structs.astuple(undecided)  # by position: so many names cost five times as much
    kept = UNSET if drafted.kept is None else drafted.action.manifest.kept or UNSET
    decided = (trace_id, policy_version, policy_rule, calls_remaining, created_at, kept, drafted.policy_input)
    return Plan(*(*known, *decided))


def _with_values(drafted: Draft, accepted: Any) -> Draft:
    """The draft with the values that policy may decide by. Raises GateError schema_violation for any that it can't."""
    try:
        values = values_at(accepted, drafted.action.manifest.policy_input)
    except NotScalar as error:
        raise GateError("schema_violation", reason=str(error)) from None
    return msgspec.structs.replace(drafted, values=values, policy_input=canonical_bytes(values).decode())


def _with_unresolved(drafted: Draft) -> UndecidedPlan:
    """The plan with all that is unresolved in its lists.

    SECURITY: only a plan that waits for a person allows it, since the person is shown it and approves exactly it. In a
    plan without review it stays outside the lists, and the host call refuses it.
    """
    plan = drafted.plan
    egress, files = plan.egress, plan.files
    if plan.unresolved_domains:
        domains = egress.allowed_domains + plan.unresolved_domains
        patience = PROXY_PATIENCE_SECONDS if drafted.has_live_sync else 0
        egress = msgspec.structs.replace(egress, allowed_domains=domains, proxy_patience_seconds=patience)
    if files is not None and plan.unresolved_paths:
        files = msgspec.structs.replace(files, allowed_paths=files.allowed_paths + plan.unresolved_paths)
    return msgspec.structs.replace(plan, egress=egress, files=files)


def _templated_input(request: str, planned: PlannedRequest) -> str:
    """JSON text `{"call": …, "request": …}`: a provider sends `call` as it stands."""
    return f'{{"call":{msgspec.json.encode(planned).decode()},"request":{request}}}'


def _egress(action: Action, learned: Learned, touched: Targets, settings: Settings) -> PlanEgress:
    if action.egress_profile == "none":
        return _NO_EGRESS
    allowed = action.allowed_domains + learned.domains
    return PlanEgress(
        profile=action.egress_profile,
        allowed_domains=allowed,
        allowed_methods=action.allowed_methods,
        proxy_url=settings.egress_proxy_url if action.egress_profile == PROXIED else None,
        proxy_secret=settings.egress.proxy_secret if action.egress_profile == PROXIED else None,
        unsafe_resolve=settings.egress.unsafe_resolve,
        networks=planned_networks(
            settings.egress.networks, action.egress_profile, allowed + touched.unresolved_domains, touched.http_request
        ),
    )


def _secrets(action: Action, egress: PlanEgress) -> tuple[SecretUse, ...]:
    """The manifest's secrets, and the proxy's credentials for a worker that goes through the proxy."""
    shown = () if egress.proxy_secret is None else (SecretUse(egress.proxy_secret),)
    return action.secrets + shown


_NO_EGRESS = PlanEgress()
