"""Canonical JSON (RFC 8785): one value, one sequence of bytes. What is hashed and signed here is always this.

msgspec writes the same bytes as RFC 8785 for values with ASCII names and integers, thirty times faster than the pure
Python encoder, which serves the rest: floats and other names. A property test holds the two together.
"""

import hashlib
from typing import Any

import msgspec
import rfc8785

MAX_SAFE_INTEGER = 2**53 - 1
"""Beyond it JSON numbers have no agreed value (RFC 7493 §2.2)."""

_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class NotCanonical(ValueError):
    """A value without a canonical form: NaN, infinities, integers beyond 2^53, lone surrogates, names not strings."""


def canonical_bytes(value: object) -> bytes:
    """The canonical form of a JSON value (dict, list, tuple, str, int, float, bool, None). Raises NotCanonical."""
    return _written(value)[0]


def durable_bytes(value: object) -> bytes:
    """The canonical form, of a value that whoever reads it can write again. Raises NotCanonical for any other.

    RFC 8785 writes the float 1e16 as 10000000000000000, which a reader may take for an integer, and then has a number
    that I-JSON does not allow: a hash or signature over it could not be checked by everybody.
    """
    written, was_plain = _written(value)
    if not was_plain and canonical_bytes(msgspec.json.decode(written)) != written:
        raise NotCanonical("a number would be read as another")
    return written


def _written(value: object) -> tuple[bytes, bool]:
    try:
        if is_plain(value):
            return _encode_sorted(value), True
        return rfc8785.dumps(value), False  # type: ignore[arg-type]  # it checks what it is given
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise NotCanonical(str(error)) from None


def is_plain(value: Any) -> bool:
    """True when msgspec in sorted order writes this value's canonical form. May raise RecursionError."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER)
    if kind is dict:
        # Most of what is written are texts: they are passed over here, without a call for each.
        for name, item in value.items():
            if type(name) is not str or not name.isascii():
                return False
            if type(item) is not str and not is_plain(item):
                return False
        return True
    if kind is list or kind is tuple:
        return all(map(is_plain, value))
    return False


def sha256_hex(data: bytes) -> str:
    """`sha256:<hex>`, the form in which every hash is shown and stored."""
    return "sha256:" + hashlib.sha256(data).hexdigest()
