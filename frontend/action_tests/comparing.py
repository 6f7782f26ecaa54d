"""Differences between JSON values, each with the JSON pointer of its place."""

import json
from collections.abc import Iterator
from typing import Any, Final

from frontend.files.problems import shown

MISSING: Final = object()
"""The value of a member that is not there."""


def differences(expected: Any, found: Any, pointer: str) -> Iterator[str]:
    """One sentence for each place at which the two differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            place = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            yield from differences(expected.get(name, MISSING), found.get(name, MISSING), place)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{pointer}/{index}")
    elif expected is MISSING or found is MISSING or _kind(expected) is not _kind(found) or expected != found:
        yield f"{pointer}: expected {_said(expected)}, got {_said(found)}"


def named_differences(expected: dict[str, Any], found: dict[str, Any] | None, pointer: str) -> Iterator[str]:
    """As differences, of the members that are expected alone."""
    for name in expected:
        place = f"{pointer}/{name}"
        yield from differences(expected[name], MISSING if found is None else found.get(name, MISSING), place)


def as_written(expected: Any, text: Any) -> Any:
    """A sent body for comparison: its JSON value where an object, a list or a number is expected."""
    if isinstance(expected, str) or not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def _said(value: Any) -> str:
    return "nothing" if value is MISSING else shown(value)
