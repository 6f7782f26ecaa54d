"""An operator's own signature of a decision: a compact JWS with the `typ` `approval+jws` (docs/evidence.md).

Owns what such a text looks like, what it states, and how that is held against the hold it is about. Guarantees that
every claim was looked at: one with a member that is not known here is refused. Front and notary both read with this,
each with a check of its own that the key has signed it.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ipc.keys.jwk import KeyRefused, coordinates, p256_thumbprint
from ipc.keys.jws import es256_numbers, is_recent, split
from ipc.network.htu import normalise_htu
from ipc.texts.encoding import b64url_decode, decode_object

TYPE: Final = "approval+jws"
APPROVE: Final = "approve"
DENY: Final = "deny"
MAX_CHARACTERS: Final = 8192
"""Holds a reason of 500 characters or a rule of 500, whatever they are written in."""


class SignatureRefused(ValueError):
    """Not a signature of this decision; the text says why, for people, and never repeats the input."""


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The statement that an operator signs."""

    aud: str
    """The gateway's `public_base_url`; in dev mode another of its loopback names will do."""
    approval_id: str
    action_id: str
    plan_hash: str
    """The hash of the stored plan."""
    shown_hash: str
    """The hash of the text that the operator was shown (ipc/keys/shown.py)."""
    decision: Literal["approve", "deny"]
    iat: float
    """Unix seconds."""
    operator: str | None = None
    """The operator's name, where the client knows it."""
    learn_domain: str | None = None
    learn_path: str | None = None
    """As in the request's query."""
    reason: str | None = None
    """As in the body of a deny."""


class SignedText(NamedTuple):
    """A signature that was taken apart and not yet checked: its claims, and what to check it with."""

    claims: dict[str, Any]
    x: str
    y: str
    jkt: str
    """Thumbprint of the key at x and y."""
    signed: bytes
    r: int
    s: int


class Signed(NamedTuple):
    """A signature of a decision that was read and not yet checked: who is said to have signed what."""

    statement: Statement
    text: SignedText

    @property
    def jkt(self) -> str:
        """Thumbprint of the key in its header."""
        return self.text.jkt


class Subject(NamedTuple):
    """The expected content of a signature: the stored hold, this gateway, the operator who sent it."""

    addresses: tuple[str, ...]
    """Base URLs of this gateway: any of them will do as `aud`."""
    approval_id: str
    action_id: str
    plan_hash: str
    shown_hash: str
    operator: str


def read(text: str) -> Signed:
    """Take a signature apart. Raises SignatureRefused. The key in its header is anybody's."""
    opened = take_apart(text, TYPE)
    try:
        statement = msgspec.convert(opened.claims, Statement)
    except msgspec.ValidationError:
        raise SignatureRefused("its claims are not those of an approval, or there are others") from None
    return Signed(statement, opened)


def take_apart(text: str, type_: str) -> SignedText:
    """Read a compact JWS of this `typ`, without its claims. Raises SignatureRefused."""
    if len(text) > MAX_CHARACTERS:
        raise SignatureRefused(f"it is longer than {MAX_CHARACTERS} characters")
    try:
        signed, header, payload, signature = split(text)
        members = decode_object(b64url_decode(header))
        claims = decode_object(b64url_decode(payload))
        r, s = es256_numbers(signature)
    except ValueError:
        raise SignatureRefused("it is not a compact JWS of two JSON objects and an ES256 signature") from None
    x, y = _key_of(members, type_)
    return SignedText(claims, x, y, p256_thumbprint(x, y), signed.encode("ascii"), r, s)


def _key_of(header: dict[str, Any], type_: str) -> tuple[str, str]:
    if header.get("typ") != type_ or header.get("alg") != "ES256":
        raise SignatureRefused(f"its header needs typ {type_} and alg ES256")
    if header.keys() - {"typ", "alg", "jwk"}:
        raise SignatureRefused("its header has members beside typ, alg and jwk")
    try:
        return coordinates(header.get("jwk"))
    except KeyRefused:
        raise SignatureRefused("its jwk is not a public P-256 key") from None


def check_statement(statement: Statement, subject: Subject, now: float, patience: float = 0.0) -> None:
    """Hold every claim but decision, rules and reason against the hold; callers that know what was asked check those.

    `patience` are seconds that it may be older than its window. Raises SignatureRefused.
    """
    check_address(statement.aud, subject.addresses)
    for name in ("approval_id", "action_id", "plan_hash", "shown_hash"):
        if getattr(statement, name) != getattr(subject, name):
            raise SignatureRefused(f"{name} is not that of the approval")
    if statement.operator not in (None, subject.operator):
        raise SignatureRefused("operator is not the name of the operator who sent it")
    if not is_recent(statement.iat, now, patience):
        raise SignatureRefused("iat is outside the window of a proof")


def check_address(aud: str, addresses: Iterable[str]) -> None:
    """Raises SignatureRefused for an audience that is not among these addresses of this gateway."""
    address = _address(aud)
    if address is None or address not in map(_address, addresses):
        raise SignatureRefused("aud is not the public_base_url of this gateway")


def _address(uri: str) -> str | None:
    try:
        return normalise_htu(uri).rstrip("/")
    except ValueError:
        return None
