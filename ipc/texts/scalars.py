"""Scalars of JSON, compared exactly: a number is the decimal that JSON writes, and values of different types are never
equal."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any, TypeGuard

from ipc.texts.pointers import Scalar


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a JSON number, false for `true` and `false`."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact(value: float) -> Decimal:
    """The decimal that JSON writes for this number: 0.1 is a tenth, 1e2 is 100."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def is_held_whole(text: str) -> bool:
    """True for the text of a JSON number with a point or an exponent whose double is the number that stands there."""
    try:
        return Decimal(text) == exact(float(text))
    except InvalidOperation:  # an exponent that no decimal has
        return False


def has_rounded_number(document: bytes) -> bool:
    """True for a JSON text with a number that reading rounds. Raises ValueError and RecursionError as json does."""
    rounded: list[str] = []

    def read(text: str) -> float:
        if not is_held_whole(text):
            rounded.append(text)
        return float(text)

    json.loads(document, parse_float=read)
    return bool(rounded)


def scalar_key(value: Scalar) -> tuple[str, Any]:
    """Equal for values that are one JSON value."""
    if is_number(value):
        return "number", exact(value)
    return type(value).__name__, value
