"""Answers whether a request that a JSON Schema accepts can have a value at a JSON pointer.

Keywords that rule a value out for certain count; a keyword that is not understood rules nothing out. So `can_have` is
False only for a pointer that names nothing in every request.
"""

from typing import Any
from urllib.parse import unquote

from frontend.errors import GateError
from frontend.schemas.validator import SchemaRefused, Validator
from ipc.texts.pointers import index_of, steps_of, value_at

_MAX_REFERENCES = 32
"""References that are followed on the way of one pointer; beyond it nothing is ruled out."""
_APPLICATORS = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")
"""Keywords that may declare members for `unevaluatedProperties` and `unevaluatedItems`."""
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})


def can_have(schema: Any, pointer: str, *, lists: bool = False) -> bool:
    """True unless `schema` rules out a scalar (with `lists`: or a list of scalars) at `pointer`."""
    return _Walk(schema, lists).can_have(schema, tuple(steps_of(pointer)), 0)


class _Walk:
    def __init__(self, root: Any, lists: bool) -> None:
        self._root = root
        self._lists = lists
        self._known: dict[tuple[int, int, int], bool] = {}
        """By the identity of a schema, the steps that are left, and the references before: schemas that refer twice to
        others that do the same would be as many ways as 2 to the number of them."""

    def can_have(self, schema: Any, steps: tuple[str, ...], references: int) -> bool:
        if not isinstance(schema, dict):
            return schema is not False
        key = (id(schema), len(steps), references)
        if key not in self._known:
            self._known[key] = self._can_have(schema, steps, references)
        return self._known[key]

    def _can_have(self, schema: dict[str, Any], steps: tuple[str, ...], references: int) -> bool:
        if not all(self.can_have(part, steps, references) for part in _list(schema.get("allOf"))):
            return False
        for keyword in ("anyOf", "oneOf"):
            parts = _list(schema.get(keyword))
            if parts and not any(self.can_have(part, steps, references) for part in parts):
                return False
        if not self._referred(schema.get("$ref"), steps, references):
            return False
        for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
            if isinstance(values, list) and not any(self._is_in(value, steps) for value in values):
                return False
        if not steps:
            return self._may_end(schema, references)
        return self._through_object(schema, steps, references) or self._through_list(schema, steps, references)

    def _referred(self, reference: Any, steps: tuple[str, ...], references: int) -> bool:
        if not isinstance(reference, str) or not reference.startswith("#") or references >= _MAX_REFERENCES:
            return True
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return True
        try:
            target = value_at(self._root, pointer)
        except LookupError:
            return True  # told where the schema is checked
        return self.can_have(target, steps, references + 1)

    def _through_object(self, schema: dict[str, Any], steps: tuple[str, ...], references: int) -> bool:
        if not _may_be(schema, "object") or not _has_room(schema.get("maxProperties"), 0):
            return False
        if "propertyNames" in schema and not _takes(schema["propertyNames"], steps[0]):
            return False
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        named = [properties[steps[0]]] if isinstance(properties, dict) and steps[0] in properties else []
        for pattern, part in patterns.items() if isinstance(patterns, dict) else ():
            if _takes({"pattern": pattern}, steps[0]):
                named.append(part)
        return self._all_or_other(schema, named, "additionalProperties", "unevaluatedProperties", steps, references)

    def _through_list(self, schema: dict[str, Any], steps: tuple[str, ...], references: int) -> bool:
        index = index_of(steps[0])
        if index is None or not _may_be(schema, "array") or not _has_room(schema.get("maxItems"), index):
            return False
        first = _list(schema.get("prefixItems"))
        return self._all_or_other(schema, first[index : index + 1], "items", "unevaluatedItems", steps, references)

    def _all_or_other(
        self, schema: dict[str, Any], named: list[Any], other: str, unevaluated: str, steps: tuple[str, ...],
        references: int,
    ) -> bool:  # fmt: skip
        """True if every schema in `named` can have the rest of the way, or without any that of the keyword `other`."""
        if not named:
            is_open = other in schema or any(keyword in schema for keyword in _APPLICATORS)
            named = [schema.get(other, True if is_open else schema.get(unevaluated, True))]
        return all(self.can_have(part, steps[1:], references) for part in named)

    def _may_end(self, schema: dict[str, Any], references: int) -> bool:
        if any(_may_be(schema, kind) for kind in _SCALARS):
            return True
        if not self._lists or not _may_be(schema, "array"):
            return False
        return _Walk(self._root, False).can_have(schema.get("items", True), (), references)

    def _is_in(self, value: Any, steps: tuple[str, ...]) -> bool:
        for step in steps:
            index = index_of(step)
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and index is not None and index < len(value):
                value = value[index]
            else:
                return False
        items = value if self._lists and isinstance(value, list) else [value]
        return not any(isinstance(item, dict | list) for item in items)


def _takes(schema: Any, name: str) -> bool:
    """True unless the schema, which is not looked up in any other, refuses the name."""
    try:
        Validator(schema if isinstance(schema, dict) else {"not": {}} if schema is False else {}).validate(name)
    except GateError:
        return False
    except SchemaRefused:
        return True
    return True


def _may_be(schema: dict[str, Any], kind: str) -> bool:
    types = schema.get("type")
    return types is None or kind in (types if isinstance(types, list) else [types])


def _has_room(most: Any, index: int) -> bool:
    return isinstance(most, bool) or not isinstance(most, int | float) or most > index


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
