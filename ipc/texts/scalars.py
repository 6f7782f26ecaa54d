"""Scalars of JSON, compared exactly: a number is the decimal that JSON writes, and values of different types are never
equal."""

from decimal import Decimal
from typing import Any, TypeGuard

from ipc.texts.pointers import Scalar


def is_number(value: object) -> TypeGuard[int | float]:
    """True for a JSON number, false for `true` and `false`."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def exact(value: float) -> Decimal:
    """The decimal that JSON writes for this number: 0.1 is a tenth, 1e2 is 100."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))


def scalar_key(value: Scalar) -> tuple[str, Any]:
    """Equal for values that are one JSON value."""
    if is_number(value):
        return "number", exact(value)
    return type(value).__name__, value
