"""Canonical JSON (RFC 8785): one value, one sequence of bytes. Everything that is hashed and signed has this form.

One walk checks a value and replaces what msgspec in sorted order would write differently: integral floats, floats of a
few ranges, and objects whose names order differently in UTF-16. Guarantees the bytes of RFC 8785 or NotCanonical, and
that the value itself is never changed. A property test compares it with the `rfc8785` package.
"""

import hashlib
import re
from collections.abc import Callable
from math import inf
from typing import Any

import msgspec

MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond it JSON numbers have no agreed value (RFC 7493 §2.2)."""

_LEAST = -MAX_SAFE_INTEGER
_AFTER_SURROGATES = re.compile("[\ue000-\uffff]")
_KINDS: tuple[type[Any], ...] = (int, float, dict, list, tuple)
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class NotCanonical(ValueError):
    """A value without a canonical form: NaN, infinities, integers beyond 2^53, lone surrogates, names not strings."""


def canonical_bytes(value: object) -> bytes:
    """The canonical form of a JSON value (dict, list, tuple, str, int, float, bool, None). Raises NotCanonical."""
    return _written(value, _as_written)


def durable_bytes(value: object) -> bytes:
    """The canonical form, of a value that every reader can write again. Raises NotCanonical for any other.

    RFC 8785 writes the float 1e16 as 10000000000000000, which a reader may take for an integer, and then has a number
    that I-JSON does not allow: a hash or signature over it could not be checked by every reader.
    """
    return _written(value, _as_read_again)


def is_durable_number(value: float) -> bool:
    """True if `durable_bytes` writes this int or float."""
    if type(value) is int:
        return _LEAST <= value <= MAX_SAFE_INTEGER
    size = abs(value)
    return size <= MAX_SAFE_INTEGER or 1e21 <= size < inf


def is_plain(value: object) -> bool:
    """True when msgspec in sorted order writes this value's canonical form. May raise RecursionError."""
    try:
        return _ready(value, _as_written) is value
    except (NotCanonical, UnicodeEncodeError):
        return False


def sha256_hex(data: bytes) -> str:
    """`sha256:<hex>`, the form in which every hash is shown and stored."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


_Number = Callable[[float], object]
"""A value that msgspec writes in the place of a float."""


def _written(value: object, number: _Number) -> bytes:
    try:
        return _encode_sorted(_ready(value, number))
    except (UnicodeEncodeError, RecursionError) as error:
        raise NotCanonical(str(error)) from None


def _ready(value: Any, number: _Number) -> Any:
    """`value` itself when msgspec writes its canonical form, or a copy of which it does. Raises NotCanonical."""
    kind = type(value)
    if kind is int:
        if _LEAST <= value <= MAX_SAFE_INTEGER:
            return value
        raise NotCanonical("an integer beyond 2^53")
    if kind is str or value is None or kind is bool:
        return value
    if kind is float:
        return number(value)
    if kind is dict:
        ready, is_ascii = value, True
        for name, item in value.items():
            if type(name) is not str:
                return _ready(_with_plain_names(value), number)
            if not name.isascii():
                is_ascii = False
            # Most items are texts, nothing or small integers: they are passed over here, without a call for each.
            its = type(item)
            if its is str or item is None or (its is int and _LEAST <= item <= MAX_SAFE_INTEGER):
                continue
            if (changed := _ready(item, number)) is not item:
                ready = value.copy() if ready is value else ready
                ready[name] = changed
        return ready if is_ascii else _in_utf16_order(ready)
    if kind is list or kind is tuple:
        items = value
        for index, item in enumerate(value):
            if type(item) is not str and (changed := _ready(item, number)) is not item:
                items = [*value] if items is value else items
                items[index] = changed
        return items
    return _ready(_without_subclass(value), number)


def _in_utf16_order(ready: dict[str, Any]) -> Any:
    """An object with any names: encoded, where msgspec would not sort them as RFC 8785 §3.2.3 does.

    UTF-8 orders names as UTF-16 does, unless a surrogate pair stands against a character from U+E000 to U+FFFF.
    """
    if not _AFTER_SURROGATES.search("".join(ready)):
        return ready
    names = sorted(ready, key=_utf16)
    if names == sorted(ready):
        return ready
    return msgspec.Raw(b"{" + b",".join([_encode_sorted({name: ready[name]})[1:-1] for name in names]) + b"}")


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _as_written(value: float) -> object:
    """A float as ECMAScript writes it (RFC 8785 §3.2.2.3).

    msgspec finds the same digits, the fewest that are read as this very float. Its form differs for integral numbers
    and between 1e-6 and 1e-5; elsewhere below 2^53 it is the same.
    """
    size = abs(value)
    if value.is_integer():
        return int(value) if size < 2.0**53 else _large(value)
    if size < 1e-6 or 1e-5 <= size < inf:
        return value
    if 1e-6 <= size < 1e-5:  # 1.5e-6 -> 0.0000015
        digits = _encode_sorted(size).partition(b"e")[0].replace(b".", b"")
        return msgspec.Raw((b"-" if value < 0 else b"") + b"0.00000" + digits)
    raise NotCanonical("not a finite number")


def _large(value: float) -> msgspec.Raw:
    """An integral float beyond 2^53: 1.5e21 -> 1.5e+21, 1.5e20 -> 150000000000000000000."""
    text = _encode_sorted(value)
    if abs(value) >= 1e21:
        return msgspec.Raw(text.replace(b"e", b"e+"))
    mantissa, _, exponent = text.partition(b"e")
    first, _, rest = mantissa.partition(b".")
    return msgspec.Raw(first + rest.ljust(int(exponent), b"0") if exponent else first)


def _as_read_again(value: float) -> object:
    """A float as ECMAScript writes it, unless a reader would take it for an integer that is too large."""
    if not is_durable_number(value):
        raise NotCanonical("not a finite number, or one that would be read as another")
    return _as_written(value)


def _without_subclass(value: Any) -> Any:
    """The plain value of an instance of a subclass (StrEnum, IntEnum, a named tuple, say). Raises NotCanonical."""
    if isinstance(value, str):
        return str.__str__(value)
    for kind in _KINDS:
        if isinstance(value, kind):
            return kind(value)
    raise NotCanonical(f"no JSON value: {type(value).__name__}")


def _with_plain_names(value: dict[Any, Any]) -> dict[str, Any]:
    if all(isinstance(name, str) for name in value):
        return {str.__str__(name): item for name, item in value.items()}
    raise NotCanonical("a name that is no string")
