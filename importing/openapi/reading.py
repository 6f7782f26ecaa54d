"""Bytes of a document as plain JSON values. Guarantees bounds on depth and on the number of values, aliases expanded,
and that any bytes give a value or ImportRefused. Never constructs an object.

Not the strict YAML of manifests (frontend/manifests/yamltree.py): published documents have numbers as keys (`200:`),
anchors and aliases.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from importing.refusal import ImportRefused

MAX_DEPTH = 100
MAX_VALUES = 3_000_000
_MAX_DIGITS = 40
_WORDS = {"null": None, "Null": None, "NULL": None, "~": None, "": None, "true": True, "True": True, "TRUE": True,
          "false": False, "False": False, "FALSE": False}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def value_of(data: bytes, name: str) -> dict[str, Any]:
    """The mapping that the document is. `name` is for messages. Raises ImportRefused."""
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        raise ImportRefused(f"{name} is not UTF-8 text.") from None
    value = _json(text, name) if text.lstrip()[:1] == "{" else _yaml(text, name)
    if not isinstance(value, dict):
        raise ImportRefused(f"{name} is no mapping, and so no OpenAPI document.")
    return value


def _json(text: str, name: str) -> Any:
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_constant=_constant, parse_int=_integer, parse_float=_finite
        )
    except RecursionError:
        raise ImportRefused(f"{name} is nested deeper than {MAX_DEPTH}.") from None
    except ValueError as error:
        raise ImportRefused(f"{name} is not JSON: {error}.") from None
    _bound(value, name)
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return members


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("a number is too large")
    return int(digits)


def _constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def _bound(value: Any, name: str) -> None:
    """Raises ImportRefused for a value that is deeper or larger than the bounds."""
    count, level, depth = 0, [value], 0
    while level:
        count += len(level)
        depth += 1
        if depth > MAX_DEPTH or count > MAX_VALUES:
            bound = f"is nested deeper than {MAX_DEPTH}" if depth > MAX_DEPTH else f"has more than {MAX_VALUES} values"
            raise ImportRefused(f"{name} {bound}.")
        level = [inside for one in level for inside in _inside(one)]


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _yaml(text: str, name: str) -> Any:
    try:
        return _Builder(text).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise ImportRefused(f"{place} is not YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError:
        raise ImportRefused(f"{name} is not YAML.") from None
    except _NotTaken as error:
        raise ImportRefused(f"{name}:{error.line} {error}.") from None


class _NotTaken(Exception):
    def __init__(self, event: Any, message: str) -> None:
        super().__init__(message)
        self.line: int = event.start_mark.line + 1


class _Builder:
    """Builds plain values from libyaml's events. SECURITY: an alias counts as all the values that it stands for."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self._count = 0

    def document(self) -> Any:
        """The one document. Raises YAMLError and _NotTaken."""
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        value, _ = self._value(next(self._events), 0)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise _NotTaken(event, "begins a second document")
        return value

    def _value(self, event: Any, depth: int) -> tuple[Any, int]:
        """A value and how deep it is nested."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        before = self._count
        self._counted(event, 1)
        if depth >= MAX_DEPTH:
            raise _NotTaken(event, f"is nested deeper than {MAX_DEPTH}")
        height = 0
        if isinstance(event, yaml.ScalarEvent):
            value: Any = _scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value, height = self._items(depth)
        else:
            value, height = self._mapping(depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._count - before, height
        return value, height

    def _alias(self, event: Any, depth: int) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            raise _NotTaken(event, "has an alias inside the value that it stands for, or without one")
        value, count, height = self._anchors[event.anchor]
        self._counted(event, count)
        if depth + height >= MAX_DEPTH:
            raise _NotTaken(event, f"is nested deeper than {MAX_DEPTH}")
        return value, height

    def _counted(self, event: Any, more: int) -> None:
        self._count += more
        if self._count > MAX_VALUES:
            raise _NotTaken(event, f"has more than {MAX_VALUES} values, aliases counted as what they stand for")

    def _items(self, depth: int) -> tuple[list[Any], int]:
        items, highest = [], 0
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            value, height = self._value(event, depth + 1)
            items.append(value)
            highest = max(highest, height)
        return items, highest + 1

    def _mapping(self, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        highest = 0
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.value == "<<":
                raise _NotTaken(event, "has a key that is no text, or merges mappings with `<<`")
            if event.value in members:
                raise _NotTaken(event, "has a name twice in one mapping")
            value, height = self._value(next(self._events), depth + 1)
            members[event.value] = value
            highest = max(highest, height)
        return members, highest + 1


def _scalar(event: Any) -> str | int | float | bool | None:
    """A scalar as JSON has it: `no` and `2024-01-31` are text."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _MAX_DIGITS and _NUMBER.fullmatch(text):
        return int(text) if _INTEGER.fullmatch(text) else _finite(text)
    return text


def _finite(text: str) -> float | str:
    number = float(text)
    return text if number in (float("inf"), float("-inf")) else number
