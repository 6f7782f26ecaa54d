"""P-256 public keys as JWKs (RFC 7517) and their thumbprints (RFC 7638), as far as that needs no cryptography.

Guarantees that members which left this module are written in the one canonical way, and that no private member was
accepted beside them. Callers that have a library for elliptic curves check that they are a point on the curve.
"""

import hashlib
from typing import Any

import msgspec

from ipc.texts.encoding import b64url_encode

COORDINATE_BYTES = 32
COORDINATE_CHARACTERS = 43
_REQUIRED = frozenset({"kty", "crv", "x", "y"})
_PRIVATE = frozenset({"d", "k", "p", "q", "dp", "dq", "qi", "oth"})
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class KeyRefused(ValueError):
    """A JWK that is not a P-256 public key. `member` names the one at fault, or is empty; `problem` says what."""

    def __init__(self, member: str, problem: str) -> None:
        super().__init__(f"{member}: {problem}" if member else problem)
        self.member = member
        self.problem = problem


class PublicKey(msgspec.Struct, frozen=True):
    """A key that has been parsed: a point on P-256 and its thumbprint."""

    x: str
    y: str
    jkt: str

    def jwk(self) -> dict[str, str]:
        """The members that a JWK of this key needs."""
        return {"kty": "EC", "crv": "P-256", "x": self.x, "y": self.y}


def thumbprint(members: dict[str, str]) -> str:
    """RFC 7638: SHA-256 of the required members of a JWK, in base64url. Members are those of its key type alone."""
    return b64url_encode(hashlib.sha256(_encode_sorted(members)).digest())


def p256_thumbprint(x: str, y: str) -> str:
    """RFC 7638 for a P-256 key; the coordinates must have been through `coordinates`."""
    # Spelled out because it is on the way of every request; a test holds it to `thumbprint`.
    text = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    return b64url_encode(hashlib.sha256(text.encode("ascii")).digest())


def _is_metadata(name: str, value: object) -> bool:
    """Members that may stand beside a public key (RFC 7517 §4, WebCrypto's `ext`), with the values that fit it."""
    match name:
        case "alg":
            return value == "ES256"
        case "use":
            return value == "sig"
        case "kid":
            return isinstance(value, str)
        case "ext":
            return isinstance(value, bool)
        case "key_ops":
            return value == ["verify"]
    return False


def coordinates(jwk: object) -> tuple[str, str]:
    """x and y of a JWK whose members are those of a P-256 public key. Cheap: does not look at the curve.

    Raises KeyRefused, for private members above all.
    """
    if type(jwk) is not dict:
        raise KeyRefused("", "must be an object")
    if len(jwk) != len(_REQUIRED):
        _refuse_other_members(jwk)
    if jwk.get("kty") != "EC":
        raise KeyRefused("kty", 'must be "EC"')
    if jwk.get("crv") != "P-256":
        raise KeyRefused("crv", 'must be "P-256"')
    return _coordinate(jwk, "x"), _coordinate(jwk, "y")


def _refuse_other_members(jwk: dict[str, Any]) -> None:
    for name in jwk.keys() - _REQUIRED:
        if name in _PRIVATE:
            raise KeyRefused(name, "is a private member; send the public key alone")
        if not _is_metadata(name, jwk[name]):
            # The name is the sender's text and may be anything: it is not repeated.
            raise KeyRefused("", "has a member that does not belong to a P-256 public key")


def _coordinate(jwk: dict[str, Any], name: str) -> str:
    value = jwk.get(name)
    if type(value) is not str or len(value) != COORDINATE_CHARACTERS or not value.isascii():
        raise KeyRefused(name, "must be 32 bytes in base64url without padding")
    return value
