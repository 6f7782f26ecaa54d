"""POST /v1/leases: a short-lived lease bound to the caller's key."""

from frontend.auth.encoding import decode_object
from frontend.auth.identity import identify, intersect_scopes
from frontend.auth.lease import parse_lease_request
from frontend.errors import GateError
from frontend.handlers.queries import MAX_BODY_BYTES
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.stores.interface import StoreUnavailable


async def issue(house: House, request: Request) -> Answer:
    """Issue a lease. Codes: invalid_request, identity_forbidden, scope_not_permitted, draining, clock_error, …

    Issuing works while the key-value store is down, unless the lease has budgets to store or an epoch to carry that
    has never been read (interface specification, "Failure conditions").
    """
    house.admission.refuse_when_draining()
    raw = await request.read_body(MAX_BODY_BYTES)
    try:
        body = decode_object(raw)
    except ValueError:
        raise GateError("invalid_request", message="the body must be a JSON object") from None
    wanted = parse_lease_request(body)
    house.authentication.now()
    try:
        identity = identify(house.settings.identity, request.peer)
        scopes = intersect_scopes(wanted.scopes, identity.scopes_allowed)
    except GateError as error:
        await house.journal.lease_refused(error, None if request.peer is None else request.peer.uid)
        raise
    lease = house.leases.issue(
        principal=identity.principal,
        owner=identity.owner,
        scopes=scopes,
        max_calls=wanted.max_calls,
        jwk=wanted.jwk,
        epoch=await house.epochs.for_issue(),
        identity_method=identity.method,
    )
    if wanted.max_calls is not None:
        try:
            await house.store.budget_open(lease.session_id, wanted.max_calls, lease.expires_at_seconds)
        except StoreUnavailable as error:
            raise GateError("budget_store_unavailable", cause=str(error)) from None
    await house.journal.lease_issued(lease, identity)
    answer = {
        "lease_jwt": lease.lease_jwt,
        "session_id": lease.session_id,
        "lease_jti": lease.lease_jti,
        "expires_at": lease.expires_at,
    }
    return json_answer(200, answer)
