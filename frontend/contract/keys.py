"""Sets of public keys (RFC 7517): those that leases are signed with, and those that receipts are."""

from typing import Annotated, Any, Literal

import msgspec

from frontend.contract.annotations import shown_as


class LeaseKey(msgspec.Struct, frozen=True):
    """A key that leases are signed with."""

    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    kid: str
    """RFC 7638 thumbprint."""
    use: Literal["sig"]
    alg: Literal["ES256"]


class LeaseKeys(msgspec.Struct, frozen=True):
    """JWKS of lease verification keys."""

    keys: list[LeaseKey]


class ReceiptKey(msgspec.Struct, frozen=True):
    """A key that receipts are or were signed with (RFC 8037)."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str
    kid: str
    """What `signing_key_id` of a receipt names."""
    use: Literal["sig"]
    alg: Literal["EdDSA"]


class ReceiptKeySet(msgspec.Struct, frozen=True):
    """JWKS of all receipt verifying keys, current and historical."""

    keys: Annotated[list[dict[str, Any]], shown_as(ReceiptKey)]
