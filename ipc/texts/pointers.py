"""JSON pointers (RFC 6901) into parsed JSON, and bounded values that they name.

Policy and evidence read scalars and short lists of scalars: `values_at` returns nothing else.
"""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

MAX_SCALARS = 32
"""Scalars in one list."""
MAX_SCALAR_BYTES = 1024
"""Bytes of one text in UTF-8. Every other scalar is shorter."""

Pointer = Annotated[str, Meta(pattern=r"^(?:/(?:[^~/\x00-\x1f\x7f-\x9f]|~[01])+)+\Z", max_length=256)]
Scalar: TypeAlias = str | int | float | bool | None
Values: TypeAlias = dict[str, Scalar | list[Scalar]]
"""By pointer, as written."""


class NotScalar(ValueError):
    """The value at `pointer` breaks `rule`. The message holds no value."""

    def __init__(self, pointer: str, rule: str) -> None:
        super().__init__(f"{pointer}: {rule}")
        self.pointer = pointer
        self.rule = rule


def steps_of(pointer: str) -> list[str]:
    """The names and indexes that the pointer goes through."""
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def index_of(step: str) -> int | None:
    """The index that a step names in a list; None for a step that names none (RFC 6901 §4)."""
    is_index = step.isascii() and step.isdigit() and (step == "0" or step[0] != "0") and len(step) < 16
    return int(step) if is_index else None


def value_at(document: Any, pointer: str) -> Any:
    """The value that the pointer names. Raises LookupError."""
    value = document
    for step in steps_of(pointer):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (index := index_of(step)) is not None and index < len(value):
            value = value[index]
        else:
            raise LookupError(pointer)
    return value


def values_at(document: Any, pointers: Iterable[str]) -> Values:
    """The scalar, or the list of at most MAX_SCALARS scalars, at each pointer. Pointers to nothing are left out.
    Raises NotScalar for any other value."""
    values: Values = {}
    for pointer in pointers:
        try:
            value = value_at(document, pointer)
        except LookupError:
            continue
        if not isinstance(value, list):
            values[pointer] = _scalar(value, pointer)
        elif len(value) > MAX_SCALARS:
            raise NotScalar(pointer, f"must have at most {MAX_SCALARS} items")
        else:
            values[pointer] = [_scalar(item, pointer) for item in value]
    return values


def _scalar(value: Any, pointer: str) -> Scalar:
    if value is not None and not isinstance(value, str | int | float):
        raise NotScalar(pointer, "must be a text, number, truth value or null, or a list of these")
    if isinstance(value, str) and len(value.encode()) > MAX_SCALAR_BYTES:
        raise NotScalar(pointer, f"must have at most {MAX_SCALAR_BYTES} bytes")
    return value
