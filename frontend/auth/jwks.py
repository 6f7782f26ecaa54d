"""The public keys of an issuer: a JWK set (RFC 7517) in a file, which is read again when it has changed.

Bounds of a set, and the refusal of one with a secret or a private key: ipc/keys/key_sets.py.
"""

import os
from typing import Any, Final, Protocol

import jwt

from frontend.errors import GateError
from frontend.files.closed import why_closed
from frontend.telemetry.logs import log
from ipc.keys.key_sets import KeySetRefused, fits, read_file
from ipc.process.lasting_problem import LastingProblem

LEAST_RSA_BITS: Final = 2048


class KeySource(Protocol):
    """The keys of one issuer."""

    async def fitting(self, kid: str | None, algorithm: str) -> list[dict[str, Any]]:
        """All keys, as new as a token of this header needs. Raises GateError identity_provider_unavailable."""


def knows(keys: list[dict[str, Any]], kid: str | None, algorithm: str) -> bool:
    """One of the keys may verify a token of this header."""
    return any(fits(one, algorithm) and (kid is None or one.get("kid") == kid) for one in keys)


def key_for(keys: list[dict[str, Any]], kid: str | None, algorithm: str) -> Any:
    """The one key that may verify a token of this header; None unless exactly one is there."""
    fitting = [one for one in keys if fits(one, algorithm) and (kid is None or one.get("kid") == kid)]
    if len(fitting) != 1:
        return None
    try:
        key = jwt.PyJWK(fitting[0], algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    is_weak = fitting[0]["kty"] == "RSA" and key.key_size < LEAST_RSA_BITS
    return None if is_weak else key


class KeyFile:
    """The keys in one file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._keys: list[dict[str, Any]] | None = None
        self._problem = LastingProblem()

    async def fitting(self, _kid: str | None, _algorithm: str) -> list[dict[str, Any]]:
        """The keys as the file has them now. Raises GateError identity_provider_unavailable."""
        try:
            status = os.stat(self._path)
            seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if seen != self._seen:
                self._keys, self._seen = None, seen
                self._keys = read_file(self._path)
                self._problem.end()
        except OSError as error:
            self._keys, self._seen = None, None
            self._say(f"can't be read: {why_closed(self._path, error)}")
        except KeySetRefused as error:
            self._say(str(error))
        if self._keys is None:
            raise GateError("identity_provider_unavailable", cause="the keys of an issuer can't be read")
        return self._keys

    def _say(self, problem: str) -> None:
        if self._problem.is_new(problem):
            log.error("the keys of an issuer can't be used", file=self._path, problem=problem)
