"""JSON as hosts write it, with comments and trailing commas, read with the places of all members.

Raises ValueError for everything else, names that stand twice in an object included.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 64
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: the places of its name, its value and the comma behind it, if there is one."""

    start: int
    value: "ParsedValue"
    comma: int | None


@dataclass(slots=True)
class ParsedValue:
    """A value, and where it stands in the text."""

    start: int
    end: int
    value: Any
    members: dict[str, Member] = field(default_factory=dict)


def parse(text: str) -> ParsedValue:
    """The one value of a text."""
    place = _skip(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, place, 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, node.end, "more than one value")
    return node


def _skip(text: str, place: int) -> int:
    """The place behind spaces and comments."""
    found = _TRIVIA.match(text, place)
    assert found is not None
    return found.end()


def _value(text: str, place: int, depth: int) -> ParsedValue:
    if depth > MAX_DEPTH:
        raise _wrong(text, place, f"more than {MAX_DEPTH} levels")
    head = text[place : place + 1]
    if head == "{":
        return _object(text, place, depth)
    if head == "[":
        return _array(text, place, depth)
    found = (_STRING if head == '"' else _SCALAR).match(text, place)
    if found is None:
        raise _wrong(text, place, "no JSON value")
    try:
        return ParsedValue(place, found.end(), json.loads(found[0]))
    except ValueError:
        raise _wrong(text, place, "no JSON value") from None


def _object(text: str, start: int, depth: int) -> ParsedValue:
    node = ParsedValue(start, start, {})
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        name = _STRING.match(text, place)
        if name is None:
            raise _wrong(text, place, "no name of a member")
        key = json.loads(name[0])
        if key in node.members:
            raise _wrong(text, place, "a name that stands twice in its object")
        colon = _skip(text, name.end())
        if text[colon : colon + 1] != ":":
            raise _wrong(text, colon, "no colon behind a name")
        value = _value(text, _skip(text, colon + 1), depth + 1)
        comma, behind = _comma(text, value.end, "}")
        node.members[key] = Member(place, value, comma)
        node.value[key] = value.value
        place = behind
    node.end = place + 1
    return node


def _array(text: str, start: int, depth: int) -> ParsedValue:
    node = ParsedValue(start, start, [])
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        item = _value(text, place, depth + 1)
        node.value.append(item.value)
        _, place = _comma(text, item.end, "]")
    node.end = place + 1
    return node


def _comma(text: str, place: int, closing: str) -> tuple[int | None, int]:
    """The place of the comma behind a value, if there is one, and that of the next token."""
    place = _skip(text, place)
    if text[place : place + 1] == ",":
        return place, _skip(text, place + 1)
    if text[place : place + 1] != closing:
        raise _wrong(text, place, f"neither a comma nor {closing}")
    return None, place


def _wrong(text: str, place: int, what: str) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, place) + 1} has {what}")
