"""Receipt keys: the Ed25519 key that signs, and the JWKS of all that ever did.

Guarantees that the key in use is in the JWKS file before anything is signed, that a key once listed stays listed, and
that a signature and the id beside it are of one key, whatever is exchanged meanwhile. Never shows a private key.
"""

from pathlib import Path
from typing import Any, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frontend.auth.encoding import b64url_decode
from frontend.auth.keysets import ED25519_SET, KeySetFile, public_jwk, published
from frontend.auth.signing_keys import open_key, receipt_place
from frontend.evidence.receipts import Receipt, Signature, envelope_of, receipt_fields
from ipc.canonical import NotCanonical, sha256_hex

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


class _Held(NamedTuple):
    """One key in use, and the set that lists it."""

    key: Ed25519PrivateKey
    kid: str
    jwks: dict[str, Any]
    keys: ReceiptKeys


def _held(key: Ed25519PrivateKey, jwks: dict[str, Any]) -> _Held:
    kid, keys = public_jwk(key)["kid"], ReceiptKeys(jwks)
    if kid not in keys:
        raise ValueError("the JWKS does not list the signing key")
    return _Held(key, kid, jwks, keys)


class ReceiptSigner:
    """Signs receipts with one key and shows them against all. Key and set are replaced as one (`use`).

    A receipt whose key is not listed may be another front's that has followed a rotation already: then, and only then,
    the set is looked at again.
    """

    def __init__(self, key: Ed25519PrivateKey, jwks: dict[str, Any], key_set: KeySetFile | None = None) -> None:
        """Raises ValueError when `jwks` is none or does not list the key."""
        self._held = _held(key, jwks)
        self._key_set = key_set

    @classmethod
    def open(cls, key_path: Path, jwks_path: Path) -> "ReceiptSigner":
        """Load the key, and list it in the JWKS file where it is missing. Raises KeyFileError."""
        found = open_key(receipt_place(key_path, jwks_path))
        return cls(found.private, found.jwks(), KeySetFile(jwks_path, ED25519_SET))

    def use(self, key: Ed25519PrivateKey, jwks: dict[str, Any]) -> None:
        """Sign with this key from now on, verify with these. Raises ValueError as the constructor does."""
        self._held = _held(key, jwks)
        if self._key_set is not None:
            self._key_set.look_again()

    @property
    def kid(self) -> str:
        """Id of the key that signs."""
        return self._held.kid

    def sign(self, data: bytes) -> Signature:
        """An Ed25519 signature and the id of its key."""
        held = self._held
        return Signature(held.key.sign(data).hex(), held.kid)

    def jwks(self) -> dict[str, Any]:
        """All public keys, the current one first, then the latest first (GET /v1/receipt-keys)."""
        return self._held.jwks

    def shown(self, receipt: Receipt) -> dict[str, Any]:
        """A receipt as the interface shows it: its fields and `signature_status`."""
        status = self._held.keys.status(receipt)
        if status == "unknown_kid" and self._key_set is not None and (listed := self._key_set.if_changed()) is not None:
            held = self._held
            if held.kid in {one.kid for one in listed}:
                self._held = _held(held.key, published(listed, held.kid))
                status = self._held.keys.status(receipt)
        return receipt_fields(receipt) | {"signature_status": status}


def _public_key(jwk: dict[str, Any]) -> Ed25519PublicKey | None:
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(jwk.get("kid"), str):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(b64url_decode(jwk["x"]))
    except (KeyError, ValueError, AttributeError):
        return None
