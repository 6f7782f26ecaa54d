"""Rules of a policy's data about values of a request: thresholds and caps (docs/policy.md, "Thresholds").

Numbers are compared as the decimals that JSON writes, never rounded; values of different JSON types are never equal.
A value that is missing, or that no number compares with, makes an answer stricter, never milder.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from ipc.caps import MAX_CAPS
from ipc.texts.pointers import MAX_SCALAR_BYTES, MAX_SCALARS, Pointer, Values
from ipc.texts.scalars import exact, is_number, scalar_key

MAX_RULES = MAX_CAPS
"""Thresholds, and caps, of one action."""
MAX_WINDOW_SECONDS = 2_678_400
MAX_NUMBER = 2**53 - 1
MAX_PLACES = 9
"""Decimals of a cap's amounts."""
RULE: Final = "threshold"
"""The rule of a decision that a threshold made stricter."""

Outcome: TypeAlias = Literal["hold", "deny"]
Number: TypeAlias = int | float
Listed = Annotated[tuple[str | int | float | bool, ...], Meta(min_length=1, max_length=MAX_SCALARS)]
Seconds = Annotated[int, Meta(ge=1, le=MAX_WINDOW_SECONDS)]


def told(error: msgspec.ValidationError) -> str:
    """The problem of a rule, for people."""
    return re.sub(r"Expected `str` matching regex .*'", "must be a pointer such as /amount", str(error))


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One value of an action's requests, and the one rule that it must keep."""

    pointer: Pointer
    hold_above: Number | None = None
    deny_above: Number | None = None
    hold_unless_in: Listed | None = None
    deny_unless_in: Listed | None = None

    def __post_init__(self) -> None:
        if len(self._given) != 1:
            raise ValueError(f"must have one of {', '.join(KINDS)}")
        _check_number(self.hold_above if self.deny_above is None else self.deny_above)
        for item in self.listed or ():
            _check_item(item)

    @property
    def _given(self) -> list[str]:
        return [name for name in KINDS if getattr(self, name) is not None]

    @property
    def kind(self) -> str:
        """The name of its rule."""
        return self._given[0]

    @property
    def place(self) -> tuple[object, ...]:
        """An action has one threshold with these."""
        return self.pointer, self.kind

    @property
    def listed(self) -> tuple[str | int | float | bool, ...] | None:
        """The values that it allows; None for one that compares numbers."""
        return self.deny_unless_in if self.hold_unless_in is None else self.hold_unless_in

    def outcome(self, values: Values) -> Outcome | None:
        """The stricter outcome of a request with these values; None where it keeps the rule."""
        outcome: Outcome = "hold" if self.kind.startswith("hold") else "deny"
        value = values.get(self.pointer)
        if self.listed is not None:
            items = value if isinstance(value, list) else [value]
            is_known = bool(items) and self.pointer in values
            is_kept = is_known and set(map(scalar_key, items)) <= set(map(scalar_key, self.listed))
            return None if is_kept else outcome
        most = self.hold_above if self.deny_above is None else self.deny_above
        if not is_number(value) or most is None:
            return "hold"
        return outcome if exact(value) > exact(most) else None

    def said(self) -> str:
        """The rule in words; it holds no value of a request."""
        most = self.hold_above if self.deny_above is None else self.deny_above
        if self.listed is None:
            return f"{self.pointer} is above {most}, or is no number"
        return f"{self.pointer} is not among {msgspec.json.encode(self.listed).decode()}"


KINDS: Final = tuple(name for name in Threshold.__struct_fields__ if name != "pointer")
"""The rules that a threshold may have."""


class Cap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sum that one value of an action's requests may reach within a rolling window, for each subject of `per`."""

    pointer: Pointer
    per: Literal["principal", "owner", "all"]
    window_seconds: Seconds
    hold_above: Number | None = None
    deny_above: Number | None = None

    def __post_init__(self) -> None:
        if self.hold_above is None and self.deny_above is None:
            raise ValueError("must have hold_above or deny_above, or both")
        for number in (self.hold_above, self.deny_above):
            _check_number(number)
            if number is not None and not is_amount(number):
                raise ValueError(f"amounts must be 0 or more, with at most {MAX_PLACES} decimal places")

    @property
    def place(self) -> tuple[object, ...]:
        """An action has one cap with these: two would be one counter, to which each call is added twice."""
        return self.pointer, self.per, self.window_seconds


def is_amount(value: Any) -> bool:
    """True for a number that a cap can count: 0 or more, below 2^53, with at most nine decimal places."""
    if not is_number(value) or not 0 <= value <= MAX_NUMBER:
        return False
    exponent = exact(value).normalize().as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -MAX_PLACES


def strictest(thresholds: Iterable[Threshold], values: Values) -> tuple[Outcome, Threshold] | None:
    """The strictest outcome of these thresholds, and the first threshold that has it; None where all are kept."""
    found: tuple[Outcome, Threshold] | None = None
    for threshold in thresholds:
        outcome = threshold.outcome(values)
        if outcome == "deny":
            return outcome, threshold
        if outcome is not None and found is None:
            found = outcome, threshold
    return found


def _check_number(value: Number | None) -> None:
    if value is not None and not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise ValueError("numbers must be between -(2^53 - 1) and 2^53 - 1")


def _check_item(item: Any) -> None:
    if isinstance(item, str) and len(item.encode()) > MAX_SCALAR_BYTES:
        raise ValueError(f"texts must have at most {MAX_SCALAR_BYTES} bytes")
    if is_number(item):
        _check_number(item)
