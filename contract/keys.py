"""Sets of public keys (RFC 7517): those that leases are signed with, and those that receipts are."""

from typing import Annotated, Any, Literal

from .noun import Noun, shown_as


class LeaseKey(Noun, frozen=True, kw_only=True):
    """A key that leases are signed with."""

    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    kid: str
    """RFC 7638 thumbprint."""
    use: Literal["sig"]
    alg: Literal["ES256"]


class LeaseKeys(Noun, frozen=True, kw_only=True):
    """JWKS of lease verification keys."""

    keys: tuple[LeaseKey, ...]


class ReceiptKey(Noun, frozen=True, kw_only=True):
    """A key that receipts are or were signed with (RFC 8037)."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str
    kid: str
    """The `signing_key_id` of receipts that it signed."""
    use: Literal["sig"]
    alg: Literal["EdDSA"]


class ReceiptKeySet(Noun, frozen=True, kw_only=True):
    """JWKS of all receipt verifying keys, current and historical."""

    keys: Annotated[tuple[dict[str, Any], ...], shown_as(ReceiptKey)]
