"""Public keys: GET /.well-known/jwks.json for leases, GET /v1/receipt-keys for receipts."""

import msgspec

from contract.keys import LeaseKeys, ReceiptKeySet
from frontend.auth.authentication import OperatorCaller
from frontend.contract.annotations import codes
from frontend.services import Services


@codes()
async def lease_keys(services: Services) -> LeaseKeys:
    """Show the public keys that leases are signed with, as a JWKS."""
    return msgspec.convert(msgspec.json.decode(services.known.now.lease_jwks), LeaseKeys)


@codes("evidence_store_unavailable")
async def receipt_keys(services: Services, operator: OperatorCaller) -> ReceiptKeySet:
    """Show the public keys of receipts, current and historical, as a JWKS.

    The look is audited.
    """
    await services.journal.operator_act("ReceiptKeysRead", operator)
    return msgspec.convert(msgspec.json.decode(services.known.now.receipt_jwks), ReceiptKeySet)
