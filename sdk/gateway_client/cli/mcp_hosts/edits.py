"""Changes of one member in a text of JSON with comments: every other character stays as it is."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gateway_client.cli.mcp_hosts.jsonc import ParsedValue, parse

_BLANK = re.compile(r"[ \t]*")


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value at `path`, in objects that are made where they are missing. Raises ValueError."""
    node, depth = parse(text), 0
    indent = _indent(text, node)
    for depth, name in enumerate(path):
        _check_object(node, path[:depth])
        member = node.members.get(name)
        if member is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _inserted(text, node, _written(name, value, indent, depth + 1, _line_end(text)), indent, depth)
        node = member.value
    return text[: node.start] + _dumped(value, indent, depth + 1, _line_end(text)) + text[node.end :]


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at `path`, which is there, and without the objects that it leaves empty.

    An object with a comment in it is not empty. Raises ValueError.
    """
    node = parse(text)
    for depth, name in enumerate(path[:-1]):
        _check_object(node, path[:depth])
        node = node.members[name].value
    text = _without(text, node, path[-1])
    for depth in range(len(path) - 1, 0, -1):
        owner = parse(text)
        for name in path[: depth - 1]:
            owner = owner.members[name].value
        left = owner.members[path[depth - 1]].value
        if text[left.start + 1 : left.end - 1].strip():
            break
        text = _without(text, owner, path[depth - 1])
    return text


def _without(text: str, node: ParsedValue, name: str) -> str:
    """The text without one member of an object."""
    names = list(node.members)
    member = node.members[name]
    start, end = member.start, member.value.end
    if member.comma is not None:
        text = text[: member.comma] + text[member.comma + 1 :]
    elif (place := names.index(name)) > 0:
        comma = node.members[names[place - 1]].comma
        assert comma is not None  # another member follows it
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    return _cut(text, start, end)


def _cut(text: str, start: int, end: int) -> str:
    """The text without a stretch, and without the lines that would be left empty by it."""
    before = len(text[:start].rstrip(" \t"))
    behind = _BLANK.match(text, end)
    assert behind is not None
    is_own_line = text[before - 1] == "\n" and text[behind.end() : behind.end() + 2].lstrip("\r")[:1] == "\n"
    if is_own_line:
        return text[:before] + text[text.index("\n", behind.end()) + 1 :]
    if text[before - 1] == "\n":  # the indent is that of the rest of the line
        return text[:start] + text[behind.end() :]
    return text[:before] + text[end:]


def _inserted(text: str, node: ParsedValue, member: str, indent: str, depth: int) -> str:
    """The text with a member as the first one of an object: no line that is there needs another comma."""
    newline, inside = _line_end(text), node.start + 1
    head, rest = text[:inside], text[inside:]
    gap = text[inside : node.end - 1]
    if not gap.strip():
        return f"{head}{newline}{indent * (depth + 1)}{member}{newline}{indent * depth}{text[node.end - 1 :]}"
    comma = "," if node.members else ""
    if not node.members or "\n" in text[inside : next(iter(node.members.values())).start]:
        return f"{head}{newline}{indent * (depth + 1)}{member}{comma}{rest}"
    return f"{head}{newline}{indent * (depth + 1)}{member}{comma}{newline}{indent * (depth + 1)}{rest.lstrip(' ')}"


def _written(name: str, value: Any, indent: str, depth: int, newline: str) -> str:
    return f"{json.dumps(name)}: {_dumped(value, indent, depth, newline)}"


def _dumped(value: Any, indent: str, depth: int, newline: str) -> str:
    """The value as it stands `depth` levels deep; arrays of texts on one line."""
    if isinstance(value, dict) and value:
        inner = f",{newline}".join(
            f"{indent * (depth + 1)}{_written(name, one, indent, depth + 1, newline)}" for name, one in value.items()
        )
        return f"{{{newline}{inner}{newline}{indent * depth}}}"
    return json.dumps(value, ensure_ascii=False)


def _indent(text: str, root: ParsedValue) -> str:
    """One level of indentation: that of the first member, if it begins its line."""
    for member in root.members.values():
        line = text[text.rfind("\n", 0, member.start) + 1 : member.start]
        if line and not line.strip(" \t"):
            return line
    return "  "


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _check_object(node: ParsedValue, path: Sequence[str]) -> None:
    if not isinstance(node.value, dict):
        raise ValueError(f"{'.'.join(path) or 'the whole'} is no object")
