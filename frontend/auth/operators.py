"""Operators: named credentials of people, found by API key in constant time.

Keys are kept as SHA-256 only, for every form in the configuration. That a request is also signed by the
operator's own key is for the proof check, which is given `dpop_jkt`.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

import msgspec

from frontend.errors import GateError
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.settings import OperatorSettings

MAX_KEY_CHARACTERS = 512
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


class Operator(msgspec.Struct, frozen=True):
    """A person who may decide. `dpop_jkt` None accepts any proof key, and exists in dev mode only."""

    name: str
    dpop_jkt: str | None
    roles: frozenset[str] = frozenset(OPERATOR_ROLES)
    groups: frozenset[str] = frozenset()
    owner: str | None = None


def _digest_of(settings: OperatorSettings) -> bytes:
    if (settings.api_key is None) == (settings.api_key_sha256 is None):
        raise ValueError(f"operator {settings.name}: exactly one of api_key and api_key_sha256 is needed")
    if settings.api_key is not None:
        if not 0 < len(settings.api_key) <= MAX_KEY_CHARACTERS:
            raise ValueError(f"operator {settings.name}: api_key must have 1 to {MAX_KEY_CHARACTERS} characters")
        return hashlib.sha256(settings.api_key.encode()).digest()
    digest = settings.api_key_sha256 or ""
    if _DIGEST.fullmatch(digest) is None:
        raise ValueError(f"operator {settings.name}: api_key_sha256 must be 64 lower case hex digits")
    return bytes.fromhex(digest)


class Operators:
    """All operators of a configuration. ValueError when two share a name or a key, or one has no usable key."""

    def __init__(self, settings: Iterable[OperatorSettings]) -> None:
        self._by_digest: list[tuple[bytes, Operator]] = []
        for one in settings:
            digest = _digest_of(one)
            for other_digest, other in self._by_digest:
                if other.name == one.name or other_digest == digest:
                    raise ValueError(f"operator {one.name}: the name or the key is taken by operator {other.name}")
            operator = Operator(one.name, one.dpop_jkt, frozenset(one.roles), frozenset(one.groups), one.owner)
            self._by_digest.append((digest, operator))

    def follow(self, others: "Operators") -> None:
        """Be these operators from now on: a key of any other is refused with its next request."""
        self._by_digest = others._by_digest

    def authenticate(self, key: str) -> Operator:
        """The operator with this API key. Raises GateError invalid_operator_token."""
        holder: Operator | None = None
        if len(key) <= MAX_KEY_CHARACTERS:
            digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
            # SECURITY: all are compared, each in constant time: the time tells neither which one matched nor how much.
            for candidate, operator in self._by_digest:
                if hmac.compare_digest(candidate, digest):
                    holder = operator
        if holder is None:
            raise GateError("invalid_operator_token", cause="no operator has this key")
        return holder
