"""The public keys of an issuer: a JWK set (RFC 7517) in a file, which is read again when it has changed.

Guarantees bounds on what is read, and that a set with a secret or a private key verifies nothing.
"""

import os
import stat
from typing import Any, Final

import jwt
import msgspec

from frontend.errors import GateError
from frontend.telemetry.logs import log

MAX_SET_BYTES: Final = 256 * 1024
MAX_KEYS: Final = 64
LEAST_RSA_BITS: Final = 2048
_TYPES: Final = {"ES": "EC", "Ed": "OKP", "PS": "RSA", "RS": "RSA"}
"""Beginning of an algorithm's name -> type of its keys."""


class KeySet(msgspec.Struct, frozen=True):
    """The `keys` of a JWK set."""

    keys: list[dict[str, Any]]


class KeySetRefused(Exception):
    """The set will not do. The text says why, without a word of it."""


_decode = msgspec.json.Decoder(KeySet).decode


def read_set(data: bytes) -> list[dict[str, Any]]:
    """The keys for signatures in this set. Raises KeySetRefused."""
    try:
        found = _decode(data).keys
    except (ValueError, RecursionError):
        raise KeySetRefused("is no JWK set") from None
    if len(found) > MAX_KEYS:
        raise KeySetRefused(f"has more than {MAX_KEYS} keys")
    # SECURITY: with a key that others may know, every token could be made by them.
    if any(name in one for one in found for name in ("d", "k")):
        raise KeySetRefused("holds a private key or a secret")
    return [one for one in found if one.get("use", "sig") == "sig"]


def key_for(keys: list[dict[str, Any]], kid: str | None, algorithm: str) -> Any:
    """The one key that may verify a token of this header; None unless exactly one is there."""
    kind = _TYPES[algorithm[:2]]
    fitting = [
        one for one in keys
        if one.get("kty") == kind and one.get("alg", algorithm) == algorithm and (kid is None or one.get("kid") == kid)
    ]  # fmt: skip
    if len(fitting) != 1:
        return None
    try:
        key = jwt.PyJWK(fitting[0], algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return None if getattr(key, "key_size", LEAST_RSA_BITS) < LEAST_RSA_BITS and kind == "RSA" else key


class KeyFile:
    """The keys in one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._keys: list[dict[str, Any]] | None = None
        self._said = ""

    def keys(self) -> list[dict[str, Any]]:
        """The keys as the file has them now. Raises GateError identity_provider_unavailable."""
        try:
            status = os.stat(self._path)
            seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if seen != self._seen:
                self._keys, self._seen = None, seen
                self._keys, self._said = read_set(self._read()), ""
        except OSError as error:
            self._keys, self._seen = None, None
            self._say(f"can't be read: {error.strerror}")
        except KeySetRefused as error:
            self._say(str(error))
        if self._keys is None:
            raise GateError("identity_provider_unavailable", cause="the keys of an issuer can't be read")
        return self._keys

    def _read(self) -> bytes:
        # A name that leads to a pipe must not hold up the front.
        with os.fdopen(os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise KeySetRefused("is no file")
            data = file.read(MAX_SET_BYTES + 1)
        if len(data) > MAX_SET_BYTES:
            raise KeySetRefused(f"has more than {MAX_SET_BYTES} bytes")
        return data

    def _say(self, problem: str) -> None:
        if problem == self._said:
            return
        self._said = problem
        log.error("the keys of an issuer can't be used", file=self._path, problem=problem)
