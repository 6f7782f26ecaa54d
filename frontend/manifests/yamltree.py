"""YAML text as a tree of plain values that remember their lines.

Reads a strict part of YAML: one document, string keys once each, no anchors, aliases or tags, scalars as in JSON (so
`no` and `1:30` are text). Guarantees bounded depth, and that any text gives a tree or a problem. Never constructs an
object.
"""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
import yaml

from frontend.files.problems import Report, shown

MAX_DEPTH = 64
_MAX_NUMBER_LENGTH = 40
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|(?:0|[1-9][0-9]*)(?=[eE]))(?:[eE][-+]?[0-9]+)?")

Scalar: TypeAlias = str | int | float | bool | None
Path: TypeAlias = tuple[str | int, ...]

_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class Node(msgspec.Struct, frozen=True):
    """A value and the line where it (or its key) stands, from 1."""

    value: Scalar | dict[str, "Node"] | list["Node"]
    line: int
    is_bare: bool = False
    """A mapping in braces with a name that has no value, as `{title}`: mostly a text that lacks its quotes."""

    def plain(self) -> Any:
        """The JSON value without the lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def line_at(self, path: Iterable[str | int]) -> int:
        """Line of the deepest node that exists on the way along `path`."""
        node = self
        for step in path:
            member = node._member(step)
            if member is None:
                break
            node = member
        return node.line

    def at(self, path: Iterable[str | int]) -> "Node | None":
        """The node at `path`; None if it is missing."""
        node: Node | None = self
        for step in path:
            node = node._member(step) if node else None
        return node

    def _member(self, step: str | int) -> "Node | None":
        if isinstance(self.value, dict):
            return self.value.get(str(step))
        if isinstance(self.value, list) and isinstance(step, int) and step < len(self.value):
            return self.value[step]
        return None


def dotted(path: Path) -> str:
    """A path as people write it: `secrets[0].inject.header`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


class _Stop(Exception):
    """Reading can't go on; the problem is noted."""


def read_tree(text: str, report: Report) -> Node | None:
    """The document's root, or None when the text is no such YAML. Problems of every kind go to `report`."""
    try:
        return _TreeBuilder(text, report).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context
        # At the end of a text the mark of the parser is a line behind it.
        line = min(mark.line + 1, len(f"{text}.".splitlines())) if mark else 0
        report.add(line, "", f"not YAML: {what}.", "Correct the syntax.")
    except yaml.YAMLError as error:
        report.add(0, "", f"not YAML: {shown(str(error))}.", "Correct the text.")
    except _Stop:
        pass
    return None


class _TreeBuilder:
    """Builds the tree from libyaml's events: aliases, anchors and tags are still visible there."""

    def __init__(self, text: str, report: Report) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=yaml.CSafeLoader)
        self._report = report

    def document(self) -> Node:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            self._stop(0, (), "the file is empty.", "Write one action, or remove the file.")
        root = self._node(next(self._events), (), 0)
        next(self._events)  # the document's end
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._stop(event.start_mark.line + 1, (), "a second document begins here.", "Write one action a file.")
        return root

    def _stop(self, line: int, path: Path, message: str, mend: str) -> None:
        self._report.add(line, dotted(path), message, mend)
        raise _Stop

    def _node(self, event: Any, path: Path, line: int) -> Node:
        line = line or event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._report.add(line, dotted(path), "an alias stands here.", "Write the value out.")
            return Node(None, line)
        if event.anchor is not None:
            self._report.add(line, dotted(path), "an anchor stands here.", "Remove it.")
        if event.tag is not None:
            self._report.add(line, dotted(path), "a tag stands here.", "Remove it.")
        if isinstance(event, yaml.ScalarEvent):
            return Node(self._scalar(event, path, line), line)
        if len(path) >= MAX_DEPTH:
            self._stop(line, path, f"values are nested deeper than {MAX_DEPTH}.", "Flatten them.")
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._items(path), line)
        members, has_empty = self._members(path)
        return Node(members, line, is_bare=has_empty and event.flow_style)

    def _items(self, path: Path) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items)), 0))
        return items

    def _members(self, path: Path) -> tuple[dict[str, Node], bool]:
        """All members, and whether one of them has nothing at all for its value."""
        members: dict[str, Node] = {}
        has_empty = False
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = self._node(event, (*path, ""), line).value
            inside = (*path, key) if isinstance(key, str) else path
            event = next(self._events)
            has_empty |= isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == ""
            node = self._node(event, inside, line)
            if not isinstance(key, str):
                self._report.add(line, dotted(path), "a key is not text.", "Quote it.")
            elif key in members:
                first = members[key].line
                self._report.add(
                    line, dotted(inside), f"{shown(key)} stands here twice.", f"Keep one; the first is on line {first}."
                )
            else:
                members[key] = node
        return members, has_empty

    def _scalar(self, event: Any, path: Path, line: int) -> Scalar:
        text: str = event.value
        if not event.implicit[0]:
            return text
        if text in _WORDS:
            return _WORDS[text]
        is_integer = _INTEGER.fullmatch(text) is not None
        if not is_integer and not _NUMBER.fullmatch(text):
            return text
        if len(text) <= _MAX_NUMBER_LENGTH:
            number = int(text) if is_integer else float(text)
            if math.isfinite(number):
                return number
        self._report.add(line, dotted(path), "a number is too large.", "Make it smaller, or quote it if it is text.")
        return None
