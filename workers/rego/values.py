"""Turns a question into an input document of rego-cpp, by way of its C interface.

Owns the one fact that makes this safe: rego-cpp keeps every string as the text between the quotes of its JSON form.
Handing it a raw string makes equal strings differ and lets a quote in a request write fields into the decision, so
strings are escaped here, exactly as `canonical_json` writes the data. Never reads anything back.
"""

import json
import math
import sys
from collections.abc import Callable
from typing import Any

from regopy import rego_shared

_lib = rego_shared.rego

_put_string: Callable[[int, bytes], int] = _lib.regoInputString
_put_int: Callable[[int, int], int] = _lib.regoInputInt
_put_float: Callable[[int, float], int] = _lib.regoInputFloat
_put_bool: Callable[[int, bool], int] = _lib.regoInputBoolean
_put_null: Callable[[int], int] = _lib.regoInputNull
_close_item: Callable[[int], int] = _lib.regoInputObjectItem
_close_object: Callable[[int, int], int] = _lib.regoInputObject
_close_array: Callable[[int, int], int] = _lib.regoInputArray

_INT64_MAX = 2**63 - 1


class NotAValue(Exception):
    """The document holds something that has no JSON form, or rego-cpp refused it."""


def canonical_json(value: object) -> str:
    """JSON text whose strings are spelt as `escaped` spells them. Raises ValueError for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def escaped(text: str) -> bytes:
    """The form in which rego-cpp keeps this string: its JSON form without the quotes. Raises UnicodeEncodeError."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text.encode()
    return canonical_json(text)[1:-1].encode()


class Input:
    """An input document in rego-cpp's memory, freed with `free`."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Build it. Raises NotAValue for anything but JSON values (integers of 64 bits, strings of Unicode scalars)."""
        self.pointer: int = _lib.regoNewInput()
        self.text: bytes | None = None
        """The document as a term, where `pointer` has it with other numbers."""
        try:
            _put(self.pointer, document)
            if not _keeps_numbers(document):
                self.text = canonical_json(document).encode()
        except UnicodeEncodeError:
            self.free()
            raise NotAValue("a string holds half a surrogate pair") from None
        except NotAValue:
            self.free()
            raise

    def free(self) -> None:
        """Give the memory back; the object is of no use afterwards."""
        _lib.regoFreeInput(self.pointer)


def _keeps_numbers(value: Any) -> bool:
    """False for a number that rego-cpp's interface rounds: it writes them with six decimal places."""
    if isinstance(value, float):  # the smallest ones fail as a term, and stay 0
        return float(f"{value:f}") == value or abs(value) < sys.float_info.min
    if isinstance(value, dict):
        return all(map(_keeps_numbers, value.values()))
    return not isinstance(value, list) or all(map(_keeps_numbers, value))


def _put(target: int, value: Any) -> None:
    """Push one value on the builder's stack. Ordered by how often each kind comes."""
    kind = type(value)
    if kind is str:
        failed = _put_string(target, escaped(value))
    elif kind is list:
        for item in value:
            _put(target, item)
        failed = _close_array(target, len(value))
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise NotAValue("an object has a key that is not a string")
            failed = _put_string(target, escaped(key))
            _put(target, item)
            failed |= _close_item(target)
            if failed:
                raise NotAValue("the evaluator refused a member")
        failed = _close_object(target, len(value))
    elif value is None:
        failed = _put_null(target)
    elif kind is bool:
        failed = _put_bool(target, value)
    elif kind is int:
        if not -_INT64_MAX <= value <= _INT64_MAX:
            raise NotAValue("an integer exceeds 64 bits")
        failed = _put_int(target, value)
    elif kind is float and math.isfinite(value):
        failed = _put_float(target, value)
    else:
        raise NotAValue(f"{kind.__name__} has no JSON form")
    if failed:
        raise NotAValue("the evaluator refused a value")
