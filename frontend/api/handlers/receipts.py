"""GET /v1/receipts/{receipt_id}: the same body for agents and operators."""

from typing import Any

import msgspec

from frontend.auth.authentication import Caller, OperatorCaller
from frontend.contract.annotations import codes
from frontend.contract.receipts import Receipt
from frontend.errors import GateError
from frontend.notary.errors import notary_errors_as
from frontend.services import Services


@codes("receipt_not_found", "ledger_unavailable")
async def by_agent(services: Services, _caller: Caller, receipt_id: str) -> Receipt:
    """Show a receipt.

    Any caller with a valid lease, and any operator, may see any receipt: its id is not to be guessed.
    """
    return await _receipt(services, receipt_id)


@codes("receipt_not_found", "ledger_unavailable")
async def by_operator(services: Services, _operator: OperatorCaller, receipt_id: str) -> Receipt:
    """Show a receipt."""
    return await _receipt(services, receipt_id)


async def _receipt(services: Services, receipt_id: str) -> Receipt:
    with notary_errors_as("ledger_unavailable"):
        shown = await services.notary.receipt(receipt_id)
    if shown is None:
        raise GateError("receipt_not_found")
    fields = msgspec.json.decode(shown.receipt, type=dict[str, Any])
    return msgspec.convert(fields | {"signature_status": shown.signature_status}, Receipt)
