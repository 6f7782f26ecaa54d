"""GET /v1/receipts/{receipt_id}: the same body for agents and operators, in the bytes that the ledger holds."""

from typing import Annotated

import msgspec

from contract.receipts import Receipt
from frontend.auth.authentication import Caller, OperatorCaller, asker_of
from frontend.contract.annotations import WrittenAs, codes
from frontend.http.answers import Answer
from frontend.notary.errors import notary_errors_as
from frontend.notary.sealed import missing
from frontend.services import Services
from ipc.operations.evidence import ShowReceipt

Shown = Annotated[Answer, WrittenAs(Receipt)]


@codes("receipt_not_found", "sealed", "ledger_unavailable")
async def by_agent(services: Services, caller: Caller, receipt_id: str) -> Shown:
    """Show a receipt.

    Any caller with a valid lease, and any operator, may see any receipt: its id is not to be guessed.
    """
    return await _receipt(services, receipt_id, asker_of(caller))


@codes("receipt_not_found", "sealed", "ledger_unavailable")
async def by_operator(services: Services, operator: OperatorCaller, receipt_id: str) -> Shown:
    """Show a receipt."""
    return await _receipt(services, receipt_id, asker_of(operator))


async def _receipt(services: Services, receipt_id: str, asker: str) -> Answer:
    with notary_errors_as("ledger_unavailable"):
        shown = await services.notary.ask(ShowReceipt(receipt_id, asker))
    if shown is None:
        raise await missing(services.notary, "receipt_not_found", receipt_id)
    status = msgspec.json.encode({"signature_status": shown.signature_status})
    return Answer(200, shown.receipt[:-1] + b"," + status[1:])
