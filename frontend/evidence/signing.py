"""Receipt keys: the Ed25519 key that signs, and the JWKS of all that ever did.

Guarantees that the key in use is in the JWKS file before anything is signed, and that a key once listed stays listed.
Never shows a private key.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frontend.auth.encoding import b64url_decode, b64url_encode
from frontend.auth.keyfiles import KeyFileError, load_ed25519, read_private, write_private
from frontend.auth.keys import thumbprint
from frontend.evidence.canonical import NotCanonical, sha256_hex
from frontend.evidence.receipts import Receipt, envelope_of, receipt_fields
from ipc.exits import Exit

SignatureStatus = Literal["verified", "unsigned", "unknown_kid", "signature_invalid"]


class ReceiptKeys:
    """The public keys of a JWKS by `kid`. Keys of other kinds than Ed25519 are passed over."""

    def __init__(self, jwks: dict[str, Any]) -> None:
        """Raises ValueError for what is not a JWKS."""
        listed = jwks.get("keys")
        if not isinstance(listed, list) or not all(isinstance(jwk, dict) for jwk in listed):
            raise ValueError("not a JWKS: an object with an array named keys")
        self._keys = {jwk["kid"]: key for jwk in listed if (key := _public_key(jwk)) is not None}

    def __contains__(self, kid: str) -> bool:
        return kid in self._keys

    def status(self, receipt: Receipt) -> SignatureStatus:
        """What the signature of a receipt is worth (interface specification, "Receipt").

        A `result_hash` that is not that of the signed bytes counts as an invalid signature.
        """
        signature, kid = receipt.receipt_signature, receipt.signing_key_id
        if not isinstance(signature, str):
            return "unsigned"
        key = self._keys.get(kid) if isinstance(kid, str) else None
        if key is None:
            return "unknown_kid"
        try:
            envelope = envelope_of(receipt)
            key.verify(bytes.fromhex(signature), envelope)
        except (InvalidSignature, NotCanonical, ValueError):
            return "signature_invalid"
        return "verified" if receipt.result_hash == sha256_hex(envelope) else "signature_invalid"


def signature_status(receipt: Receipt, jwks: dict[str, Any]) -> SignatureStatus:
    """One receipt against a JWKS. Raises ValueError for what is not a JWKS."""
    return ReceiptKeys(jwks).status(receipt)


class ReceiptSigner:
    """Signs receipts with one key and shows them against all. `jwks` lists the key's public half."""

    def __init__(self, key: Ed25519PrivateKey, jwks: dict[str, Any]) -> None:
        """Raises ValueError when `jwks` is none or does not list the key."""
        self.kid = public_jwk(key)["kid"]
        self._key = key
        self._jwks = jwks
        self._keys = ReceiptKeys(jwks)
        if self.kid not in self._keys:
            raise ValueError("the JWKS does not list the signing key")

    @classmethod
    def open(cls, key_path: Path, jwks_path: Path) -> "ReceiptSigner":
        """Load the key, and list it in the JWKS file where it is missing. Raises KeyFileError."""
        key = load_ed25519(key_path)
        jwks = _read_jwks(jwks_path)
        jwk = public_jwk(key)
        if jwk["kid"] not in ReceiptKeys(jwks):
            jwks = jwks | {"keys": [*jwks["keys"], jwk]}
            write_private(jwks_path, msgspec.json.format(msgspec.json.encode(jwks), indent=2) + b"\n")
        return cls(key, jwks)

    def sign(self, data: bytes) -> str:
        """Hex Ed25519 signature."""
        return self._key.sign(data).hex()

    def jwks(self) -> dict[str, Any]:
        """All current and historical public keys (GET /v1/receipt-keys)."""
        return self._jwks

    def shown(self, receipt: Receipt) -> dict[str, Any]:
        """A receipt as the interface shows it: its fields and `signature_status`."""
        return receipt_fields(receipt) | {"signature_status": self._keys.status(receipt)}


def public_jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    """The public half as a JWK (RFC 8037) with its thumbprint as `kid`."""
    members = {"crv": "Ed25519", "kty": "OKP", "x": b64url_encode(key.public_key().public_bytes_raw())}
    return {**members, "kid": thumbprint(members), "use": "sig", "alg": "EdDSA"}


def _public_key(jwk: dict[str, Any]) -> Ed25519PublicKey | None:
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(jwk.get("kid"), str):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(b64url_decode(jwk["x"]))
    except (KeyError, ValueError, AttributeError):
        return None


def _read_jwks(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"keys": []}
    try:
        jwks = msgspec.json.decode(read_private(path), type=dict[str, Any])
        ReceiptKeys(jwks)
    except (ValueError, RecursionError):
        raise KeyFileError(f"{path}: is not a JWKS, an object with an array named keys.", Exit.CONFIG) from None
    return jwks
