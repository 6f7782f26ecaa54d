"""Manifests as JSON Schema 2020-12, for editors: `python -m frontend.actions.describe`, `gateway schema manifest`.

Made by the code that reads manifests: it is run over a section that has no fields, and that writes down what it is
asked for instead. So what the gateway accepts fits the schema, and a new field is in it by itself; what only shows
between several fields is `gateway check`'s to say.
"""

import sys
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from frontend.files.problems import Report
from frontend.manifests.fields import Form, Section, TextRule
from frontend.manifests.reading import read_fields
from frontend.manifests.schemacheck import DIALECT
from frontend.manifests.verification import verification
from frontend.manifests.yamltree import Node
from ipc.process.exits import Exit
from ipc.process.output import flushed
from ipc.verifiers import DEFAULT_VERIFIER, VERIFIERS

_FREE = "*"
"""Stands for every name of a mapping whose names are free."""


class Describer(Section):
    """A section without fields. `form` is the schema of the field that was asked for."""

    def __init__(self) -> None:
        super().__init__(Node(None, 0), (), Report(""))
        self.form: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}

    def _told(self, name: str, form: Form, default: Any = None, *, is_required: bool = False) -> None:
        described = dict(form)
        if is_required:
            self.form.setdefault("required", []).append(name)
        else:
            described = _or_null(described)
            if default not in (None, "", ()):
                described["default"] = default
        if name == _FREE:
            self.form["additionalProperties"] = described
        else:
            self.form["properties"].setdefault(name, described)

    def text(self, name: str, rule: TextRule, default: str | None = None) -> str:
        """A text."""
        self._told(name, _text_form(rule), default, is_required=default is None and name != _FREE)
        return default or ""

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """One of a few words."""
        self._told(name, {"enum": list(allowed)}, default, is_required=default is None)
        return default or ""

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number."""
        self._told(name, {"type": "integer", "minimum": low, "maximum": high}, default)
        return default

    def positive(self, name: str, default: float, high: float) -> float:
        """A number above zero."""
        self._told(name, {"type": "number", "exclusiveMinimum": 0, "maximum": high}, default)
        return default

    def flag(self, name: str, default: bool) -> bool:
        """true or false."""
        self._told(name, {"type": "boolean"}, default)
        return default

    def texts(self, name: str, rule: TextRule, default: tuple[str, ...] = (), most: int = 256) -> tuple[str, ...]:
        """A list of different texts."""
        self._told(name, _list_form(_text_form(rule), most, is_unique=True), list(default) or None)
        return default

    def choices(self, name: str, allowed: Collection[str], default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of different words."""
        self._told(name, _list_form({"enum": list(allowed)}, 256, is_unique=True), list(default) or None)
        return default

    def section(self, name: str) -> Section:
        """A mapping below, which writes down for itself."""
        inner = Describer()
        self._told(name, inner.form)
        self.form["properties"][name] = inner.form
        inner.form["type"] = ["object", "null"]
        return inner

    def sections(self, name: str, most: int = 64) -> list[Section]:
        """A list of mappings: one stands for all."""
        inner = Describer()
        self.form["properties"][name] = _or_null(_list_form(inner.form, most, is_unique=False))
        return [inner]

    def names(self, rule: TextRule | None = None) -> tuple[str, ...]:
        """Free names: one stands for all."""
        if rule is not None:
            self.form["propertyNames"] = _text_form(rule)
        return (_FREE,)

    def plain(self, name: str, form: Form | None = None) -> Any:
        """Any JSON value, but for `form`."""
        self._told(name, form or {})

    def mapping(self, name: str, form: Form | None = None) -> dict[str, Any] | None:
        """Any JSON object."""
        self._told(name, form or {"type": "object"})
        return None

    def require(self, name: str, says: str) -> None:
        """Required only in some cases: not a matter of form."""

    def require_any(self, names: Sequence[str], says: str) -> None:  # noqa: ARG002 - the words are for a person
        """One of several fields."""
        self.form["anyOf"] = [{"required": [name]} for name in names]

    def refuse_unknown(self) -> None:
        """A section without fields has no unknown ones."""


def manifest_schema() -> dict[str, Any]:
    """The whole document."""
    top = Describer()
    read_fields(top)
    head = {"$schema": DIALECT, "title": "Manifest of an action", "description": "docs/manifests.md"}
    top.form["properties"]["verification_config"] = {"type": ["object", "null"]}
    return head | top.form | {"allOf": [_of_verifier(kind) for kind in VERIFIERS]}


def _of_verifier(kind: str) -> dict[str, Any]:
    """The form of `verification_config` for one kind; that of the default is for manifests without a kind, too."""
    top = Describer()
    verification(top, kind)
    is_default = kind == DEFAULT_VERIFIER
    if_it_is = {"properties": {"verifier_kind": {"enum": [kind, None] if is_default else [kind]}}}
    required = {} if is_default else {"required": ["verifier_kind"]}
    then = {"properties": {"verification_config": top.form["properties"]["verification_config"]}}
    return {"if": if_it_is | required, "then": then}


def _text_form(rule: TextRule) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "string", "maxLength": rule.max_length}
    # `.` means any character there, and all but line breaks in ECMA-262: a pattern of nothing else says nothing.
    return form if rule.pattern == ".*" else form | {"pattern": f"^(?:{rule.pattern})$"}


def _list_form(item: Form, most: int, *, is_unique: bool) -> dict[str, Any]:
    return {"type": "array", "maxItems": most, "items": item} | ({"uniqueItems": True} if is_unique else {})


def _or_null(form: Form) -> dict[str, Any]:
    """A field that may be absent may be null: that is the same."""
    if "$ref" in form:
        return {"anyOf": [form, {"type": "null"}]}
    if "enum" in form:
        return {**form, "enum": [*form["enum"], None]}
    return {**form, "type": [form["type"], "null"]} if isinstance(form.get("type"), str) else dict(form)


def main() -> int:
    """Print the schema; returns an exit code."""
    text = msgspec.json.format(msgspec.json.encode(manifest_schema()), indent=2).decode()
    return flushed(Exit.OK, f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
