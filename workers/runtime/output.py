"""The form of a provider's answer: one JSON object that all parsers read alike.

I-JSON (RFC 7493) within the plan's size, and the depth and number of values of any JSON document here: no duplicate
keys, no number that a double can't hold, no half of a surrogate pair. Evidence is signed over it. Never repairs
anything.
"""

import json
from typing import Any

import msgspec

from ipc.limits import MAX_DEPTH_JSON, MAX_VALUES_JSON
from ipc.texts.json_values import has_more_values

MAX_INTEGER = 2**53 - 1
"""RFC 7493 §2.2."""

_decode = msgspec.json.Decoder().decode


class BadOutput(Exception):
    """The answer can't be used. The message says why and never holds a value."""


def parse_output(text: str, max_bytes: int) -> dict[str, Any]:
    """The object of an answer. Raises BadOutput."""
    data = text.encode()
    if len(data) > max_bytes:
        raise BadOutput(f"the output has more than {max_bytes} bytes")
    if has_more_values(data, MAX_VALUES_JSON):
        raise BadOutput(f"the output has more than {MAX_VALUES_JSON} values")
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadOutput("the output is not JSON") from None
    except RecursionError:
        raise BadOutput("the output is nested too deeply") from None
    if not isinstance(value, dict):
        raise BadOutput("the output is not a JSON object")
    keys = _count_keys(value)
    # Each key has a colon behind it: more colons may stand in strings, or behind a key that was overwritten.
    if data.count(b":") != keys and _has_duplicate_key(text):
        raise BadOutput("the output has a key twice in one object")
    return value


def _count_keys(value: dict[str, Any]) -> int:
    """Keys of all objects. Raises BadOutput for depth and for integers that not every reader reads alike."""
    level: list[Any] = [value]
    keys = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH_JSON:
            raise BadOutput("the output is nested too deeply")
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys += len(container)
                container = container.values()
            for item in container:
                kind = type(item)
                if kind is dict or kind is list:
                    below.append(item)
                elif kind is int and not -MAX_INTEGER <= item <= MAX_INTEGER:
                    raise BadOutput("the output has an integer that a double can't hold")
        level = below
    return keys


def _has_duplicate_key(text: str) -> bool:
    class Duplicate(Exception):
        pass

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise Duplicate
        return members

    try:
        json.loads(text, object_pairs_hook=unique)
    except Duplicate:
        return True
    return False
