"""GET /v1/audit/events and /v1/audit/verify: what happened, and whether the record of it is whole."""

import msgspec

from frontend.authentication import OperatorCaller
from frontend.errors import GateError
from frontend.evidence.ledger import EventQuery, LedgerUnavailable
from frontend.handlers.queries import choice, moment, number, query_of
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request

DECISIONS = ("allow", "deny", "error", "pending_approval")
FILTERS = ("trace_id", "action_id", "principal", "session_id", "event_type")
DEFAULT_EVENTS, MAX_EVENTS = 100, 1000


async def events(house: House, request: Request, _operator: OperatorCaller) -> Answer:
    """Events, newest first; the bounds `after` and `before` are exclusive."""
    query = query_of(request, (*FILTERS, "decision", "after", "before", "limit"))
    wanted = EventQuery(
        **{name: query.get(name) for name in FILTERS},
        decision=choice(query, "decision", DECISIONS),
        after=moment(query, "after"),
        before=moment(query, "before"),
        limit=number(query, "limit", DEFAULT_EVENTS, MAX_EVENTS),
    )
    try:
        found = await house.ledger.query(wanted)
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return json_answer(200, {"events": [msgspec.Raw(event) for event in found], "count": len(found)})


async def verify(house: House, _request: Request, _operator: OperatorCaller) -> Answer:
    """Walk the whole chain, one walk at a time: whoever comes second waits, and gets a walk of their own."""
    try:
        async with house.verifying:
            report = await house.ledger.verify()
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return json_answer(200, msgspec.to_builtins(report))
