"""Public keys: GET /.well-known/jwks.json for leases, GET /v1/receipt-keys for receipts."""

import msgspec

from frontend.authentication import OperatorCaller
from frontend.contract.keys import LeaseKeys, ReceiptKeySet
from frontend.contract.marks import codes
from frontend.house import House


@codes()
async def lease_keys(house: House) -> LeaseKeys:
    """Show the public keys that leases are signed with, as a JWKS."""
    return msgspec.convert(house.leases.jwks(), LeaseKeys)


@codes("evidence_persistence_failed")
async def receipt_keys(house: House, operator: OperatorCaller) -> ReceiptKeySet:
    """Show the public keys of receipts, current and historical, as a JWKS.

    The look is audited.
    """
    await house.journal.operator_act("ReceiptKeysRead", operator)
    return msgspec.convert(house.signer.jwks(), ReceiptKeySet)
