"""Reading a mapping field by field: types, bounds and patterns, with a problem for everything that does not hold.

A reader never stops at the first problem: it notes the problem and continues with the default, so that all problems of
a file are seen at once. Its results may be used only if no problem was noted. Does not know the meaning of fields.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from frontend.files.problems import Report, did_you_mean, shown
from frontend.manifests.yamltree import Node, Path, dotted

Form: TypeAlias = Mapping[str, Any]
"""JSON Schema 2020-12."""
MOST_UNKNOWN = 100
"""Unknown fields of a section that are noted one by one: a likely name is looked for, which takes a millisecond."""


class TextRule:
    """A rule for a text: `says` completes `must be …`, and `mend` is the remedy for a text that breaks it."""

    def __init__(self, pattern: str, says: str, max_length: int, mend: str = "Write it so.") -> None:
        self._pattern = re.compile(pattern, re.DOTALL)
        self.pattern = pattern
        self.max_length = max_length
        self.says = says
        self.mend = mend

    def holds(self, text: str) -> bool:
        """True for a text of the right length and form."""
        return len(text) <= self.max_length and self._pattern.fullmatch(text) is not None


class Section:
    """One mapping, its place in the file, and which of its fields were asked for."""

    def __init__(self, node: Node, path: Path, report: Report) -> None:
        self.line = node.line
        self.path = path
        self.report = report
        self._members: dict[str, Node] = {}
        self._asked: set[str] = set()
        if isinstance(node.value, dict):
            self._members = node.value
        elif node.value is not None:
            self._wrong(node, path, "must be a mapping", "Write fields below it.")

    def field(self, name: str) -> str:
        """The dotted path of a field of this section."""
        return dotted((*self.path, name))

    def line_of(self, name: str) -> int:
        """Where a field stands, or this section when it is absent."""
        node = self._members.get(name)
        return node.line if node else self.line

    def has(self, name: str) -> bool:
        """True when the field is there and not null."""
        return self._node(name) is not None

    def text(self, name: str, rule: TextRule, default: str | None = None) -> str:
        """A text that `rule` accepts; without `default` the field is required."""
        node = self._node(name)
        if node is None:
            return self._absent(name, rule.says) if default is None else default
        if not isinstance(node.value, str):
            self._wrong(node, (*self.path, name), "must be text", "Quote it.")
            return ""
        if not rule.holds(node.value):
            self._wrong(node, (*self.path, name), f"must be {rule.says}", rule.mend)
        return node.value

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of `allowed`; without `default` the field is required."""
        node = self._node(name)
        if node is None:
            return self._absent(name, f"one of {', '.join(allowed)}") if default is None else default
        if not isinstance(node.value, str) or node.value not in allowed:
            mend = did_you_mean(node.value, allowed) if isinstance(node.value, str) else "Write one of them as text."
            self._wrong(node, (*self.path, name), f"must be one of {', '.join(allowed)}", mend)
            return default or ""
        return node.value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        node = self._node(name)
        if node is None:
            return default
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(node, (*self.path, name), "must be a whole number", "Write it without quotes.")
        elif value < low:
            self._wrong(node, (*self.path, name), f"must be {low} or more", f"The default is {default}.")
        elif value > high:
            self._wrong(node, (*self.path, name), f"must be {high} or less", f"The default is {default}.")
        else:
            return value
        return default

    def positive(self, name: str, default: float, high: float) -> float:
        """A number above zero, up to `high`."""
        node = self._node(name)
        if node is None:
            return default
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._wrong(node, (*self.path, name), "must be a number", "Write it without quotes.")
        elif not 0 < value <= high:
            self._wrong(
                node, (*self.path, name), f"must be above 0 and at most {high:g}", f"The default is {default:g}."
            )
        else:
            return float(value)
        return default

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        node = self._node(name)
        if node is None:
            return default
        if not isinstance(node.value, bool):
            self._wrong(node, (*self.path, name), "must be true or false", "Write it without quotes.")
            return default
        return node.value

    def texts(self, name: str, rule: TextRule, default: tuple[str, ...] = (), most: int = 256) -> tuple[str, ...]:
        """A list of different texts, each of which `rule` accepts."""
        texts: list[str] = []
        nodes = self._items(name, most)
        if nodes is None:
            return default
        for index, node in enumerate(nodes):
            path = (*self.path, name, index)
            if not isinstance(node.value, str):
                self._wrong(node, path, "must be text", "Quote it.")
            elif not rule.holds(node.value):
                self._wrong(node, path, f"must be {rule.says}", rule.mend)
            elif node.value in texts:
                self._wrong(node, path, "stands in the list twice", "Keep one.")
            else:
                texts.append(node.value)
        return tuple(texts)

    def choices(self, name: str, allowed: Collection[str], default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of different texts out of `allowed`."""
        words = "|".join(re.escape(word) for word in allowed)
        return self.texts(name, TextRule(words, f"one of {', '.join(allowed)}", 64), default)

    def section(self, name: str) -> "Section | None":
        """The mapping below a field, or None when the field is absent."""
        node = self._node(name)
        return None if node is None else Section(node, (*self.path, name), self.report)

    def sections(self, name: str, most: int = 64) -> list["Section"]:
        """A list of mappings."""
        nodes = self._items(name, most) or []
        return [Section(node, (*self.path, name, index), self.report) for index, node in enumerate(nodes)]

    def names(self, rule: TextRule | None = None) -> tuple[str, ...]:
        """Every field of a mapping whose field names are free, but for `rule`."""
        self._asked.update(self._members)
        for name, node in self._members.items():
            if rule is not None and not rule.holds(name):
                self.report.add(node.line, self.field(name), f"{shown(name)} must be {rule.says}.", "Correct it.")
        return tuple(self._members)

    def plain(self, name: str, form: Form | None = None) -> Any:  # noqa: ARG002 - form is for describe.py
        """The JSON value of a field, unchanged; None when it is absent. `form` is its JSON Schema for editors."""
        node = self._node(name)
        return None if node is None else node.plain()

    def mapping(self, name: str, form: Form | None = None) -> dict[str, Any] | None:
        """As `plain`, of a field that holds any JSON object."""
        value = self.plain(name, form)
        if value is None or isinstance(value, dict):
            return value
        self.report.wrong(self.line_of(name), self.field(name), value, "must be a mapping", "Write fields below it.")
        return None

    def require(self, name: str, says: str) -> None:
        """Note that a field is missing, unless it is there."""
        if not self.has(name):
            self._absent(name, says)

    def require_any(self, names: Sequence[str], says: str) -> None:
        """Note a problem of the first field if all of these fields are absent."""
        if not any(self.has(name) for name in names):
            self._absent(names[0], says)

    def refuse_unknown(self) -> None:
        """Note every field that was not read as unknown; call it after all reads."""
        unknown = [name for name in self._members if name not in self._asked]
        where = f"in {dotted(self.path)}" if self.path else "at the top"
        for name in unknown[:MOST_UNKNOWN]:
            message = f"unknown field {shown(name)} {where}."
            self.report.add(self.line_of(name), self.field(name), message, did_you_mean(name, self._asked))
        if len(unknown) > MOST_UNKNOWN:
            name, more = unknown[MOST_UNKNOWN], len(unknown) - MOST_UNKNOWN
            message = f"{more} more unknown fields {where}, from {shown(name)} on."
            self.report.add(self.line_of(name), self.field(name), message, "Remove them.")

    def _node(self, name: str) -> Node | None:
        self._asked.add(name)
        node = self._members.get(name)
        return None if node is None or node.value is None else node

    def _items(self, name: str, most: int) -> list[Node] | None:
        node = self._node(name)
        if node is None:
            return None
        if not isinstance(node.value, list):
            self._wrong(node, (*self.path, name), "must be a list", "Write `- ` before each item.")
            return []
        if len(node.value) > most:
            self.report.add(
                node.line, self.field(name), f"{self.field(name)} has more than {most} items.", "Shorten it."
            )
        return node.value[:most]

    def _absent(self, name: str, says: str) -> str:
        self.report.add(self.line, self.field(name), f"{self.field(name)} is missing.", f"Add it: {says}.")
        return ""

    def _wrong(self, node: Node, path: Path, rule: str, mend: str) -> None:
        self.report.wrong(node.line, dotted(path) or "the document", node.plain(), rule, mend)
