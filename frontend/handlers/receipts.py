"""GET /v1/receipts/{receipt_id}: the same body for agents and operators."""

import re

from frontend.authentication import Caller, OperatorCaller
from frontend.errors import GateError
from frontend.evidence.ledger import LedgerUnavailable
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request

IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,255}")


async def by_agent(house: House, _request: Request, _caller: Caller, receipt_id: str) -> Answer:
    """Any caller with a valid lease (interface specification, "Receipt retrieval")."""
    return await _receipt(house, receipt_id)


async def by_operator(house: House, _request: Request, _operator: OperatorCaller, receipt_id: str) -> Answer:
    """Any operator."""
    return await _receipt(house, receipt_id)


async def _receipt(house: House, receipt_id: str) -> Answer:
    if not IDENTIFIER.fullmatch(receipt_id):
        raise GateError("receipt_not_found")
    try:
        receipt = await house.ledger.receipt(receipt_id)
    except LedgerUnavailable as error:
        raise GateError("ledger_unavailable", cause=str(error)) from None
    if receipt is None:
        raise GateError("receipt_not_found")
    return json_answer(200, house.signer.shown(receipt))
