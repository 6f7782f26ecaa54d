"""Public keys of an issuer of tokens: a JWK set (RFC 7517), read within bounds.

Guarantees that a set with a secret or a private key is refused. Knows no cryptography: whether a key is a good one is
for frontend/auth/jwks.py.
"""

import os
import stat
from typing import Any, Final

import msgspec

MAX_SET_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 64
_TYPES: Final = {"ES": "EC", "Ed": "OKP", "PS": "RSA", "RS": "RSA"}
"""Beginning of an algorithm's name -> type of its keys."""

_USES: Final = ("sig", "jwt-svid")
"""The second one is that of SPIFFE bundles (SPIFFE Trust Domain and Bundle, section 4.2.2)."""


class KeySet(msgspec.Struct, frozen=True):
    """The `keys` of a JWK set."""

    keys: list[dict[str, Any]]


class KeySetRefused(Exception):
    """The set will not do. The text says why, without a word of it."""


_decode = msgspec.json.Decoder(KeySet).decode


def read_set(data: bytes) -> list[dict[str, Any]]:
    """The keys for signatures in this set. Raises KeySetRefused."""
    if len(data) > MAX_SET_BYTES:
        raise KeySetRefused(f"has more than {MAX_SET_BYTES} bytes")
    try:
        found = _decode(data).keys
    except (ValueError, RecursionError):
        raise KeySetRefused("is no JWK set") from None
    if len(found) > MAX_KEYS:
        raise KeySetRefused(f"has more than {MAX_KEYS} keys")
    # SECURITY: with a key that others may know, every token could be made by them.
    if any(name in one for one in found for name in ("d", "k")):
        raise KeySetRefused("holds a private key or a secret")
    return [one for one in found if one.get("use", "sig") in _USES]


def read_file(path: str) -> list[dict[str, Any]]:
    """The keys of the set in a file. Raises OSError, KeySetRefused."""
    # A name that leads to a pipe must not hold up its reader.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise KeySetRefused("is no file")
        return read_set(file.read(MAX_SET_BYTES + 1))


def fits(key: dict[str, Any], algorithm: str) -> bool:
    """The key may be one for signatures in this algorithm."""
    return key.get("kty") == _TYPES[algorithm[:2]] and key.get("alg", algorithm) == algorithm
