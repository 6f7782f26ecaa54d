"""Public keys: GET /.well-known/jwks.json for leases, GET /v1/receipt-keys for receipts."""

from frontend.authentication import OperatorCaller
from frontend.house import House
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request


async def lease_keys(house: House, _request: Request) -> Answer:
    """JWKS of lease verification keys."""
    return json_answer(200, house.leases.jwks())


async def receipt_keys(house: House, _request: Request, operator: OperatorCaller) -> Answer:
    """JWKS of all receipt keys, current and historical; the look is audited (docs/decisions.md, "DPoP")."""
    await house.journal.operator_act("ReceiptKeysRead", operator)
    return json_answer(200, house.signer.jwks())
