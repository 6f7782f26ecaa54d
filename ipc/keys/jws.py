"""Compact JWS (RFC 7515) signed with ES256, as far as that needs no cryptography: parts, numbers, and how old one is.

DPoP proofs and operators' signatures of approvals are both read with it. Errors are ValueErrors that never repeat the
input. Callers that have a library for elliptic curves check the signature.
"""

from ipc.texts.encoding import b64url_decode

MAX_AGE_SECONDS = 60
MAX_AHEAD_SECONDS = 5
"""A signature for one request is at most so old, and at most so far ahead (docs/contract.md, "Limits")."""
_SIGNATURE_BYTES = 64
_GROUP_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def split(text: str) -> tuple[str, str, str, str]:
    """The signed text, its header, its payload, and the signature. Raises ValueError unless it has three parts."""
    signed, _, signature = text.rpartition(".")
    header, _, payload = signed.partition(".")
    if not payload or "." in payload:
        raise ValueError("does not have three parts")
    return signed, header, payload, signature


def es256_numbers(segment: str) -> tuple[int, int]:
    """r and s of a signature's part (RFC 7518 §3.4). Raises ValueError."""
    try:
        raw = b64url_decode(segment)
    except ValueError:
        raise ValueError("signature is not base64url") from None
    if len(raw) != _SIGNATURE_BYTES:
        raise ValueError("signature is not 64 bytes")
    r, s = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    if not (0 < r < _GROUP_ORDER and 0 < s < _GROUP_ORDER):
        raise ValueError("signature is out of range")
    return r, s


def is_recent(iat: float, now: float, patience: float = 0.0) -> bool:
    """True for a NumericDate within the window; `patience` are seconds that it may be older."""
    return now - MAX_AGE_SECONDS - patience <= iat <= now + MAX_AHEAD_SECONDS
