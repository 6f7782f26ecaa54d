"""Operating the gateway: status, drain, unresolved intents."""

import msgspec

from frontend.authentication import OperatorCaller
from frontend.errors import GateError
from frontend.evidence.ledger import LedgerUnavailable
from frontend.handlers.queries import number, query_of
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request

DEFAULT_INTENTS, MAX_INTENTS = 100, 1000


async def status(house: House, _request: Request, _operator: OperatorCaller) -> Answer:
    """The facts of the running gateway; not audited (interface specification, "Admin status")."""
    return json_answer(200, await house.status())


async def drain(house: House, _request: Request, operator: OperatorCaller) -> Answer:
    """Refuse new work from now on; irreversible. The caller polls status until nothing is in flight.

    Draining comes before its evidence: a gateway whose ledger fails must still be able to refuse work.
    """
    already = house.admission.drain()
    house.announce_drain()
    await house.journal.operator_act("AdminDrain", operator)
    body = {"draining": True, "already_draining": already, "in_flight_executions": house.admission.in_flight}
    return json_answer(200, body)


async def intents(house: House, request: Request, _operator: OperatorCaller) -> Answer:
    """Intents without a receipt: dispatched, and nobody knows what came of it."""
    limit = number(query_of(request, ("limit",)), "limit", DEFAULT_INTENTS, MAX_INTENTS)
    try:
        found = await house.ledger.unresolved(limit)
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    return json_answer(200, {"intents": [msgspec.to_builtins(intent) for intent in found], "count": len(found)})
