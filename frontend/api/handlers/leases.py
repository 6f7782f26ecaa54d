"""POST /v1/leases: a short-lived lease bound to the caller's key."""

from typing import Annotated, Any

from contract.leases import KEYS_HEADER, GrantedBudgets, Lease
from contract.noun import LEFT_OUT
from frontend.auth.identity import Identity, identify, intersect_scopes
from frontend.auth.keys import parse_jwk
from frontend.calls.refusals import RefusedRequest
from frontend.contract.annotations import ReadsBody, WrittenAs, codes
from frontend.contract.forms import MAX_BODY_BYTES, parse_body
from frontend.contract.leases import LeaseRequest
from frontend.errors import GateError
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.services import Services
from frontend.telemetry.logs import log
from ipc.evidence.events import LEASE_ISSUED
from ipc.keys.jwk import KeyRefused, PublicKey
from ipc.operations.leases import Issue, TooManySessions


@codes(
    "draining", "identity_forbidden", "scope_not_permitted", "identity_provider_unavailable", "clock_error",
    "budget_exhausted", "budget_store_unavailable", "replay_cache_unavailable", "evidence_store_unavailable",
    "ledger_full", "invalid_dpop", "replay_detected",
)  # fmt: skip
async def issue(
    services: Services, request: Annotated[Request, ReadsBody(LeaseRequest)]
) -> Annotated[Answer, WrittenAs(Lease)]:
    """Issue a lease, bound to the caller's key.

    Not authenticated by a lease: the socket identifies the caller, or behind the edge its token or client
    certificate. Issuing works while the key-value store is down, unless the lease has budgets to store.
    """
    services.admission.refuse_new_leases()
    identity = await _identified(services, request)
    wanted = parse_body(LeaseRequest, await request.read_body(MAX_BODY_BYTES))
    key = _key_of(wanted.dpop_jwk)
    quota = services.pipeline.quotas.of(identity.principal)
    max_calls = quota.max_calls(None if wanted.budgets is None else wanted.budgets.max_calls)
    now = services.authentication.now()
    try:
        identity.check(key.jkt, now)
        scopes = intersect_scopes(tuple(wanted.scopes), identity.scopes_allowed)
    except GateError as error:
        await _tell(services, request.uid, identity, error)
        raise
    event = services.journal.event(LEASE_ISSUED, **identity.told)
    asked = Issue(
        identity.principal, identity.owner, scopes, max_calls, key.jkt, identity.method, event, quota.max_sessions,
        request.uid, identity.ends_at,
    )  # fmt: skip
    try:
        lease = await services.notary.ask(asked)
    except (NotaryUnavailable, NotaryRefused) as error:
        part = error.part if isinstance(error, NotaryUnavailable) else ""
        code = "budget_store_unavailable" if part == "budget" else "evidence_store_unavailable"
        raise GateError(code, cause=str(error)) from None
    if isinstance(lease, TooManySessions):
        raise await _too_many(services, identity, asked, lease)
    services.metrics.leases_issued.add()
    budgets = LEFT_OUT if max_calls is None else GrantedBudgets(max_calls=max_calls)
    answer = Lease(
        lease_jwt=lease.lease_jwt, session_id=lease.session_id, lease_jti=lease.lease_jti,
        expires_at=lease.expires_at, budgets=budgets,
    )  # fmt: skip
    keys_live = services.configuration.current.settings.limits.idempotency_seconds
    return json_answer(200, answer, ((KEYS_HEADER, str(keys_live)),))


async def _too_many(services: Services, identity: Identity, asked: Issue, told: TooManySessions) -> GateError:
    """The refusal of one more lease, with its event."""
    cause = f"{asked.principal} may have {asked.max_sessions} leases at once, and has them"
    error = GateError("budget_exhausted", cause=cause, retry_after=told.retry_after, reason="max_sessions")
    services.metrics.quota_exhausted.add("max_sessions")
    await _tell(services, asked.uid, identity, error)
    return error


async def _tell(services: Services, uid: int | None, identity: Identity, error: GateError) -> None:
    """Leave line and event of a lease that a known caller is refused."""
    if services.refusals.lines.may_say(uid, error.code):
        log.info("a lease was refused", code=error.code, principal=identity.principal, cause=error.cause)
    await services.journal.lease_refused(error, identity)


async def _identified(services: Services, request: Request) -> Identity:
    """The identity of the caller, within its rate of leases. Raises GateError.

    SECURITY: a user without an identity here draws from another bucket than users with one, and is counted in events
    instead of leaving one each time. Callers behind the edge share its user: each principal of theirs has a part.
    """
    user = "" if request.uid is None else str(request.uid)
    settings = services.configuration.current.settings.identity
    is_remote = request.uid in settings.edge_uids
    try:
        if is_remote:
            identity = await services.remote.identify(request.headers)
        else:
            identity = identify(settings, request.peer)
    except GateError as error:
        services.rates.take("unidentified", user)
        await services.refusals.note(RefusedRequest(LEASE_ISSUED, request.uid, error, {"reason": error.cause}))
        raise
    services.rates.take("lease", f"principal:{identity.principal}" if is_remote else user)
    return identity


def _key_of(jwk: dict[str, Any]) -> PublicKey:
    try:
        return parse_jwk(jwk)
    except KeyRefused as error:
        name = f"dpop_jwk.{error.member}" if error.member else "dpop_jwk"
        raise GateError("invalid_request", message=f"{name}: {error.problem}") from None
