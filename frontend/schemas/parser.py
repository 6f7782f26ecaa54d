"""Bodies from outside: strict JSON, before any schema.

parse_body accepts I-JSON (RFC 7493) and nothing else: UTF-8, no duplicate keys, no NaN or infinity, numbers that a
double holds exactly, bounded depth, a bounded number of values. Guarantees that a refusal names a place and a rule,
never a value.
"""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec

from frontend.errors import GateError
from ipc.limits import MAX_DEPTH_JSON, MAX_VALUES_JSON
from ipc.texts.json_values import has_more_values, names_in

MAX_INTEGER = 2**53 - 1
"""RFC 7493 §2.2: beyond it, not every reader sees the same number."""

_decode = msgspec.json.Decoder().decode
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_PLANE_ENDS = "".join(chr(plane * 0x10000 + end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
_NONCHARACTER = re.compile(f"[\ufdd0-\ufdef{_PLANE_ENDS}]")


def parse_body(body: bytes) -> Any:
    """The JSON value of a body; a missing body is `{}` (docs/decisions/clients.md, "Discovery and results").

    Raises GateError schema_violation with a `reason` that never holds the value.
    """
    if not body:
        return {}
    if has_more_values(body, MAX_VALUES_JSON):
        _refuse("values")
    try:
        value = _decode(body)
    except msgspec.ValidationError:
        _refuse("number_range")
    except RecursionError:
        _refuse("depth")
    except UnicodeDecodeError:
        _refuse("utf8")
    except msgspec.DecodeError:
        _refuse("json")
    _check_structure(body, value)
    if _LONG_NUMBER.search(body):
        _check_integers(value)
    if not body.isascii() or b"\\u" in body:
        _check_characters(value)
    return value


def _refuse(rule: str) -> NoReturn:
    raise GateError("schema_violation", reason=f"(body): {rule}") from None


def _check_structure(body: bytes, value: Any) -> None:
    """Depth and duplicate keys. The decoder keeps the last of two members, so fewer keys than colons are left."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    keys = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH_JSON:
            _refuse("depth")
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys += len(container)
                container = container.values()
            below += [item for item in container if type(item) is dict or type(item) is list]
        level = below
    if body.count(b":") != keys and names_in(body) != keys:
        _refuse("duplicate_key")


def _check_integers(value: Any) -> None:
    for item in _leaves(value):
        if type(item) is int and not -MAX_INTEGER <= item <= MAX_INTEGER:
            _refuse("number_range")


def _check_characters(value: Any) -> None:
    if _NONCHARACTER.search(msgspec.json.encode(value).decode()):
        _refuse("noncharacter")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
