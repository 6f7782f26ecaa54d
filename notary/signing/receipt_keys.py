"""Receipt keys: the Ed25519 key that signs, and the JWKS of all that ever did.

Guarantees that the key in use is in the JWKS file before anything is signed, that a key once listed stays listed, and
that a signature and the id beside it are of one key, whatever is exchanged meanwhile. Never shows a private key.
"""

import hashlib
from typing import Any, Final, Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ipc.texts.canonical import NotCanonical, sha256_hex
from ipc.texts.encoding import b64url_decode
from notary.ledger.receipts import LedgerReceipt, Signature, decode_receipt, encode_receipt, envelope_of, signed_in
from notary.signing.keys import HeldKey

SignatureStatus = Literal["verified", "unsigned", "unknown_kid", "signature_invalid"]
MAX_KNOWN: Final = 4096
"""Receipts whose status is remembered."""


class Shown(NamedTuple):
    """A receipt as it is shown: JSON text, and what its signature is worth."""

    receipt: bytes
    status: SignatureStatus


class ReceiptKeys:
    """The public keys of a JWKS by `kid`. Keys of other kinds than Ed25519 are passed over."""

    def __init__(self, jwks: dict[str, Any]) -> None:
        """Raises ValueError for what is not a JWKS."""
        listed = jwks.get("keys")
        if not isinstance(listed, list) or not all(isinstance(jwk, dict) for jwk in listed):
            raise ValueError("not a JWKS: an object with an array named keys")
        self._keys = {jwk["kid"]: key for jwk in listed if (key := _public_key(jwk)) is not None}
        self._known: dict[bytes, SignatureStatus] = {}
        """Hash of the stored bytes -> their status, the newest last: a receipt that was changed has another one."""

    def __contains__(self, kid: str) -> bool:
        return kid in self._keys

    def status(self, receipt: LedgerReceipt) -> SignatureStatus:
        """Judge the signature of a receipt (docs/contract.md, "Receipt").

        A `result_hash` that is not that of the signed bytes counts as an invalid signature.
        """
        signature, kid = receipt.receipt_signature, receipt.signing_key_id
        if not isinstance(signature, str):
            return "unsigned"
        if not isinstance(kid, str) or kid not in self._keys:
            return "unknown_kid"
        try:
            envelope = envelope_of(receipt)
        except NotCanonical:
            return "signature_invalid"
        return self._judged(envelope, signature, kid, receipt.result_hash)

    def has_signed(self, data: bytes, signature: object, kid: object) -> bool:
        """True if the listed key of this id has signed these bytes; `signature` is hex."""
        if not isinstance(signature, str) or not isinstance(kid, str):
            return False
        return self._judged(data, signature, kid, sha256_hex(data)) == "verified"

    def show(self, stored: bytes) -> Shown:
        """The same of stored bytes, remembered, and the bytes to show: those stored, unless a reader might take them
        for something else. Raises ValueError for what is not a receipt.
        """
        digest = hashlib.sha256(stored).digest()
        if (known := self._known.get(digest)) is not None:
            return Shown(stored, known)
        signed = signed_in(stored)
        if signed is not None and self._judged(*signed) == "verified":
            shown = Shown(stored, "verified")
        else:
            receipt = decode_receipt(stored)
            try:
                shown = Shown(encode_receipt(receipt), self.status(receipt))
            except NotCanonical as error:
                raise ValueError(str(error)) from None
        if shown.receipt == stored:
            self._known[digest] = shown.status
            if len(self._known) > MAX_KNOWN:
                del self._known[next(iter(self._known))]
        return shown

    def _judged(self, envelope: bytes, signature: str, kid: str, result_hash: str) -> SignatureStatus:
        key = self._keys.get(kid)
        if key is None:
            return "unknown_kid"
        try:
            key.verify(bytes.fromhex(signature), envelope)
        except (InvalidSignature, ValueError):
            return "signature_invalid"
        return "verified" if result_hash == sha256_hex(envelope) else "signature_invalid"


def signature_status(receipt: LedgerReceipt, jwks: dict[str, Any]) -> SignatureStatus:
    """One receipt against a JWKS. Raises ValueError for what is not a JWKS."""
    return ReceiptKeys(jwks).status(receipt)


class ReceiptSigner:
    """Signs receipts with one key and verifies them with all. `use` replaces key and set together."""

    def __init__(self, held: HeldKey[Ed25519PrivateKey]) -> None:
        self._held = held
        self._keys = ReceiptKeys(held.jwks())

    def use(self, held: HeldKey[Ed25519PrivateKey]) -> None:
        """Sign with this key from now on, verify with its set."""
        if held is not self._held:
            self._held, self._keys = held, ReceiptKeys(held.jwks())

    def sign(self, data: bytes) -> Signature:
        """An Ed25519 signature and the id of its key."""
        return Signature(self._held.private.sign(data).hex(), self._held.kid)

    def status(self, receipt: LedgerReceipt) -> SignatureStatus:
        """Judge the signature of a receipt by the present set."""
        return self._keys.status(receipt)

    def show(self, stored: bytes) -> Shown:
        """A stored receipt as it is shown. Raises ValueError for what is not one."""
        return self._keys.show(stored)


def _public_key(jwk: dict[str, Any]) -> Ed25519PublicKey | None:
    if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(jwk.get("kid"), str):
        return None
    try:
        return Ed25519PublicKey.from_public_bytes(b64url_decode(jwk["x"]))
    except (KeyError, ValueError, AttributeError):
        return None
