"""Approvals: the agent's poll; the operator's list, detail, approve and deny."""

from frontend.approvals.record import detailed, listed, polled
from frontend.approvals.states import EXPIRED, LISTABLE, PENDING, state_at
from frontend.authentication import Caller, OperatorCaller
from frontend.errors import GateError
from frontend.handlers.queries import choice, number, object_of, query_of
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from frontend.policy.question import clean_reason
from frontend.stores.interface import ApprovalRecord, StoreUnavailable

DEFAULT_LIST, MAX_LIST = 50, 200


async def poll(house: House, _request: Request, caller: Caller, approval_id: str) -> Answer:
    """The state of a hold of the caller's own session."""
    record = await _get(house, approval_id)
    if record.session_id != caller.lease.session_id:
        raise GateError("approval_session_mismatch")
    return json_answer(200, polled(record, house.authentication.now()))


async def listing(house: House, request: Request, _operator: OperatorCaller) -> Answer:
    """Approvals, newest first; `status` and `limit` as the interface specification has them."""
    query = query_of(request, ("status", "limit"))
    status = choice(query, "status", LISTABLE)
    limit = number(query, "limit", DEFAULT_LIST, MAX_LIST)
    now = house.authentication.now()
    try:
        records = await house.store.approval_list(None if status is None else (status,), limit)
    except StoreUnavailable as error:
        raise GateError("approval_store_unavailable", cause=str(error)) from None
    # A pending record whose time is over waits for the sweep; to an operator it has expired already.
    items = [listed(record, now) for record in records if status != PENDING or _is_live(record, now)]
    return json_answer(200, {"approvals": items, "count": len(items)})


async def detail(house: House, _request: Request, _operator: OperatorCaller, approval_id: str) -> Answer:
    """Everything an operator must see before deciding. 404 when it has expired, as the contract says: what is kept of
    it for forensics stands in the list and in the audit."""
    record, now = await _get(house, approval_id), house.authentication.now()
    if state_at(record.state, record.expires_at, now) == EXPIRED:
        raise GateError("approval_not_found")
    return json_answer(200, detailed(record, now))


async def approve(house: House, request: Request, operator: OperatorCaller, approval_id: str) -> Answer:
    """Execute the stored plan; goes on when the operator's connection drops."""
    query_of(request, ())
    await object_of(request, ("reason",))
    with house.admission.enter(while_draining=True):
        approved = await house.settlement.approve(approval_id, operator, house.registry)
    if not approved.executed.succeeded:
        raise GateError("action_execution_failed", cause=approved.executed.conclusion.detail["outcome"])
    return json_answer(200, approved.body(), (("X-Trace-Id", approved.executed.plan.trace_id),))


async def deny(house: House, request: Request, operator: OperatorCaller, approval_id: str) -> Answer:
    """End the hold; `reason` is optional, cleaned and cut to 500 characters."""
    query_of(request, ())
    reason = (await object_of(request, ("reason",))).get("reason")
    if reason is not None and not isinstance(reason, str):
        raise GateError("invalid_request", message="reason: a string")
    cleaned = None if reason is None else clean_reason(reason)
    denied = await house.settlement.deny(approval_id, operator, cleaned)
    return json_answer(200, denied, (("X-Trace-Id", denied["trace_id"]),))


async def _get(house: House, approval_id: str) -> ApprovalRecord:
    try:
        record = await house.store.approval_get(approval_id)
    except StoreUnavailable as error:
        raise GateError("approval_store_unavailable", cause=str(error)) from None
    if record is None:
        raise GateError("approval_not_found")
    return record


def _is_live(record: ApprovalRecord, now: float) -> bool:
    return state_at(record.state, record.expires_at, now) == PENDING
