"""A standing approval as its operator signs it: a compact JWS with the `typ` `standing+jws` (docs/evidence.md).

Owns what such a text looks like, what it states, and which calls it covers. Guarantees that every claim was looked at:
one with a member that is not known here is refused. Front and notary both read with this, each with a check of its own
that the operator's key has signed it. All that it allows follows from the signed text, never from a row beside it.
"""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ipc.keys.jws import is_recent
from ipc.keys.signed_approvals import SignatureRefused, SignedText, check_address, take_apart
from ipc.texts.pointers import MAX_SCALAR_BYTES, MAX_SCALARS, Pointer, Values
from ipc.texts.scalars import exact, is_number, scalar_key

TYPE: Final = "standing+jws"
MIN_SECONDS: Final = 60
MAX_SECONDS: Final = 30 * 24 * 3600
MAX_CALLS: Final = 1_000_000
MAX_CONDITIONS: Final = 16
_MAX_NUMBER: Final = 2**53 - 1
_ID = re.compile(r"sta_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_SLACK_SECONDS: Final = 5
"""The clocks of operator and gateway differ a little."""

Number = int | float


class TermsRefused(SignatureRefused):
    """Terms that no standing approval may have; the text says why, for people."""


class StandingCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a call's `policy_input`, and what it must be. A value that is missing, or no number where numbers
    are compared, keeps no condition."""

    pointer: Pointer
    op: Literal["<=", ">=", "==", "in"]
    value: str | Number | bool | tuple[str | Number | bool, ...]
    """For `in` a list; for `<=` and `>=` a number."""

    def __post_init__(self) -> None:
        items = self.value if isinstance(self.value, tuple) else (self.value,)
        if (self.op == "in") != isinstance(self.value, tuple) or not 0 < len(items) <= MAX_SCALARS:
            raise ValueError(f"`in` needs a list of 1 to {MAX_SCALARS} values, every other operator one value")
        if self.op in ("<=", ">=") and not is_number(self.value):
            raise ValueError("`<=` and `>=` compare numbers")
        for item in items:
            if isinstance(item, str) and len(item.encode()) > MAX_SCALAR_BYTES:
                raise ValueError(f"texts must have at most {MAX_SCALAR_BYTES} bytes")
            if is_number(item) and not -_MAX_NUMBER <= item <= _MAX_NUMBER:
                raise ValueError("numbers must be between -(2^53 - 1) and 2^53 - 1")

    def is_kept(self, values: Values) -> bool:
        """True for a call with these values."""
        value = values.get(self.pointer)
        if value is None or isinstance(value, list):
            return False
        if isinstance(self.value, tuple):
            return scalar_key(value) in map(scalar_key, self.value)
        if self.op == "==":
            return scalar_key(value) == scalar_key(self.value)
        if not is_number(value) or not is_number(self.value):
            return False
        return exact(value) <= exact(self.value) if self.op == "<=" else exact(value) >= exact(self.value)


class StandingTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terms that an operator signs."""

    aud: tuple[str, str]
    """The gateway's `public_base_url` (in dev mode another of its loopback names will do), and the origin of its
    ledger."""
    standing_id: str
    """`sta_` and a UUID, made by the operator's client: the same text is added once."""
    action_id: str
    principal: str
    """The calls of this principal, and of no other."""
    until: int
    """Unix seconds."""
    iat: float
    """Unix seconds."""
    operator: str
    max_calls: int | None = None
    """Calls that it is good for; None for any number."""
    where: tuple[StandingCondition, ...] = ()
    """Conditions that a call must keep, all of them."""

    def covers(self, action_id: str, principal: str, values: Values, now: float) -> bool:
        """True for a call that these terms let run now."""
        is_same = (self.action_id, self.principal) == (action_id, principal)
        return is_same and now < self.until and all(one.is_kept(values) for one in self.where)


class SignedStanding(NamedTuple):
    """A standing approval that was read and not yet checked."""

    terms: StandingTerms
    text: SignedText


def read_standing(text: str) -> SignedStanding:
    """Take a signed standing approval apart. Raises SignatureRefused, or TermsRefused for its claims. The key in its
    header is anybody's."""
    opened = take_apart(text, TYPE)
    try:
        return SignedStanding(msgspec.convert(opened.claims, StandingTerms), opened)
    except msgspec.ValidationError as error:
        raise TermsRefused(f"its claims are not those of a standing approval: {error}") from None


def check_standing(
    terms: StandingTerms, addresses: Iterable[str], origin: str, operator: str, now: float, patience: float = 0.0
) -> None:
    """Hold terms that are to come into force against this gateway. `patience` are seconds that they may be older.

    Raises SignatureRefused for those that are for another gateway, operator or time, TermsRefused for those that no
    standing approval may have.
    """
    check_ledger(terms, addresses, origin)
    if terms.operator != operator:
        raise SignatureRefused("operator is not the name of the operator who sent it")
    if not is_recent(terms.iat, now, patience):
        raise SignatureRefused("iat is outside the window of a proof")
    if not MIN_SECONDS - _SLACK_SECONDS - patience <= terms.until - now <= MAX_SECONDS + _SLACK_SECONDS:
        raise TermsRefused("until: from 1 minute to 30 days from now")
    if terms.max_calls is not None and not 1 <= terms.max_calls <= MAX_CALLS:
        raise TermsRefused(f"max_calls: from 1 to {MAX_CALLS}")
    if len(terms.where) > MAX_CONDITIONS:
        raise TermsRefused(f"where: at most {MAX_CONDITIONS} conditions")
    if _ID.fullmatch(terms.standing_id) is None:
        raise TermsRefused("standing_id: sta_ and a UUID in lower case")


def check_ledger(terms: StandingTerms, addresses: Iterable[str], origin: str) -> None:
    """Raises SignatureRefused for terms that are for another gateway, or for calls of another ledger."""
    check_address(terms.aud[0], addresses)
    if terms.aud[1] != origin:
        raise SignatureRefused(f"the second aud is not the origin of this ledger, {origin}")


def told(terms: StandingTerms) -> dict[str, Any]:
    """The terms as an event tells them."""
    members = {"principal": terms.principal, "until": terms.until, "max_calls": terms.max_calls}
    given = {name: value for name, value in members.items() if value is not None}
    return {**given, "where": msgspec.to_builtins(terms.where)} if terms.where else given
