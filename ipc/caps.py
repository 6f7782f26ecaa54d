"""Caps: the most that a value of an action's requests may add up to in a window (docs/policy.md, "Caps").

A front reads the value and names the counter; the notary counts. Amounts are counted exactly, in billionths: a value
with more digits is rounded up, a limit down. In texts they are plain decimals.
"""

import re
from decimal import Context, Decimal, Inexact
from typing import Final

import msgspec

PLACES: Final = 9
UNIT: Final = 10**PLACES
MAX_AMOUNT: Final = 10**18
"""The largest value of one call, and the largest limit."""
STEPS: Final = 60
"""A window is counted in this many steps at most."""
MAX_CAPS: Final = 32
"""Caps of one action."""

_AMOUNT = re.compile(r"(\d{1,40})(?:\.(\d{1,9}))?")
_exact = Context(prec=1100, traps=[Inexact])


def units_of(text: str) -> int:
    """An amount in billionths. Raises ValueError for a text that `text_of` does not make."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError("not an amount")
    return int(match[1]) * UNIT + int((match[2] or "").ljust(PLACES, "0"))


def text_of(units: int) -> str:
    """An amount in billionths as a decimal."""
    whole, rest = divmod(units, UNIT)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".") if rest else str(whole)


def rounded(value: Decimal, *, is_limit: bool = False) -> int | None:
    """A number in billionths: a value rounded up, a limit down. None if it is not from 0 to MAX_AMOUNT."""
    if not value.is_finite() or not 0 <= value <= MAX_AMOUNT:
        return None
    if value.adjusted() < -PLACES:
        return 0 if is_limit or not value else 1
    try:
        whole, rest = _exact.divmod(_exact.scaleb(value, PLACES), Decimal(1))
    except Inexact:  # more digits than a request may have
        return None
    return int(whole) + bool(rest and not is_limit)


class CapUse(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A call's use of one cap of its action."""

    pointer: str
    per: str
    """principal, owner or all."""
    subject: str
    """The principal or owner that it counts for; empty for all."""
    window_seconds: int
    value: str
    """The value in the request."""
    hold_above: str | None = None
    """None where nothing is held: there is no such limit, or holds are lifted."""
    deny_above: str | None = None


class CapReservation(msgspec.Struct, frozen=True):
    """An amount that counts for a call."""

    use: CapUse
    until: int
    """The end of its step (Unix seconds): it counts for a window more."""


class CapReading(msgspec.Struct, frozen=True):
    """A cap as it stands for one call."""

    use: CapUse
    total: str
    """The amount of the window without this call."""
    with_this: str


class CapsJudged(msgspec.Struct, frozen=True):
    """How the caps of a call stand. `denial`: why one of them denies it."""

    readings: tuple[CapReading, ...]
    is_held: bool
    denial: str | None


class CapSum(msgspec.Struct, frozen=True):
    """The amount of one subject's window."""

    subject: str
    total: str
    unknown: str
    """The part of calls whose outcome is unknown."""


def step_seconds(window_seconds: int) -> int:
    """The length of the steps that a window is counted in."""
    return -(-window_seconds // STEPS)


def end_of_step(moment: float, window_seconds: int) -> int:
    """The end of the step of this moment (Unix seconds)."""
    step = step_seconds(window_seconds)
    return (int(moment // step) + 1) * step
