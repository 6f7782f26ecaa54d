"""Receipts verified offline: the receipt and the published keys are enough, and no request is made.

Written from docs/evidence.md of the gateway: Ed25519 over the RFC 8785 form of every field but NOT_SIGNED, and
`result_hash` over the same bytes. Never believes the `signature_status` that a receipt comes with.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from gateway_client.contract.receipts import Receipt
from gateway_client.errors import ProtocolViolation
from gateway_client.evidence.canonical import canonical_bytes, sha256
from gateway_client.results import Jwks
from gateway_client.wire.decoding import parse_json

_SIGNATURE = re.compile(r"[0-9a-fA-F]{128}", re.ASCII)
NOT_SIGNED = frozenset({"result_hash", "receipt_signature", "signing_key_id", "signature_status"})


class SignatureStatus(StrEnum):
    """The verdict on a signature. Only VERIFIED proves anything; UNSIGNED is also what a forger would hand in."""

    VERIFIED = "verified"
    UNSIGNED = "unsigned"
    UNKNOWN_KID = "unknown_kid"
    SIGNATURE_INVALID = "signature_invalid"


@dataclass(frozen=True, slots=True)
class ReceiptVerdict:
    """One receipt of many. `receipt_id` is None for what is no receipt."""

    receipt_id: str | None
    status: SignatureStatus


def verify_receipt(receipt: Receipt | Mapping[str, Any], jwks: Jwks | Mapping[str, Any]) -> SignatureStatus:
    """Check one receipt, as the gateway sent it, against its keys (`GET /v1/receipt-keys`).

    Raises ValueError when `jwks` is no JWKS.
    """
    return _status(receipt.raw if isinstance(receipt, Receipt) else receipt, ed25519_keys(jwks))


def verify_receipts(
    receipts: Iterable[Receipt | Mapping[str, Any] | str | bytes], jwks: Jwks | Mapping[str, Any]
) -> Iterator[ReceiptVerdict]:
    """Check many, one at a time; a text is the JSON of one receipt. An item that is not a receipt is signature_invalid.

    Raises ValueError when `jwks` is no JWKS.
    """
    keys = ed25519_keys(jwks)
    return (_verdict(one, keys) for one in receipts)


Keys = dict[str, list[Ed25519PublicKey]]


def _verdict(given: Receipt | Mapping[str, Any] | str | bytes, keys: Keys) -> ReceiptVerdict:
    fields: Any = given.raw if isinstance(given, Receipt) else given
    if isinstance(fields, str | bytes):
        try:
            fields = parse_json(fields.encode() if isinstance(fields, str) else fields, "the receipt")
        except (ProtocolViolation, UnicodeEncodeError):
            fields = None
    if not isinstance(fields, Mapping):
        return ReceiptVerdict(None, SignatureStatus.SIGNATURE_INVALID)
    receipt_id = fields.get("receipt_id")
    return ReceiptVerdict(receipt_id if isinstance(receipt_id, str) else None, _status(fields, keys))


def _status(fields: Mapping[str, Any], keys: Keys) -> SignatureStatus:
    signature, kid = fields.get("receipt_signature"), fields.get("signing_key_id")
    if signature is None:
        return SignatureStatus.UNSIGNED
    if not isinstance(kid, str) or kid not in keys:
        return SignatureStatus.UNKNOWN_KID
    try:
        signed = bytes.fromhex(signature) if isinstance(signature, str) and _SIGNATURE.fullmatch(signature) else b""
        envelope = canonical_bytes({name: value for name, value in fields.items() if name not in NOT_SIGNED})
    except ValueError:
        return SignatureStatus.SIGNATURE_INVALID
    if fields.get("result_hash") == sha256(envelope) and any(_holds(key, signed, envelope) for key in keys[kid]):
        return SignatureStatus.VERIFIED
    return SignatureStatus.SIGNATURE_INVALID


def _holds(key: Ed25519PublicKey, signature: bytes, envelope: bytes) -> bool:
    try:
        key.verify(signature, envelope)
    except InvalidSignature:
        return False
    return True


def ed25519_keys(jwks: Jwks | Mapping[str, Any]) -> Keys:
    """Ed25519 keys by id; keys of other kinds are passed over, as RFC 7517 §5 asks for.

    Raises ValueError when `jwks` is no JWKS.
    """
    listed = jwks.keys if isinstance(jwks, Jwks) else jwks.get("keys")
    if not isinstance(listed, list | tuple) or not all(isinstance(one, Mapping) for one in listed):
        raise ValueError("not a JWKS: an object with an array named keys")
    keys: Keys = {}
    for jwk in listed:
        kid, x = jwk.get("kid"), jwk.get("x")
        if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(kid, str) or not isinstance(x, str):
            continue
        try:
            raw = base64.b64decode(x + "=" * (-len(x) % 4), altchars=b"-_", validate=True)
            keys.setdefault(kid, []).append(Ed25519PublicKey.from_public_bytes(raw))
        except ValueError:
            continue
    return keys
