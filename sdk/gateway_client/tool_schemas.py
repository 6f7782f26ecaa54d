"""Request schemas as hosts of models take them: an object at the root, without `oneOf`, `anyOf` or `allOf`. Pure.

APIs of models refuse the whole list of tools for one such root. The folded schema guides a model: it names every
property of every branch, and its description quotes the original. The gateway holds each call against the original.
"""

import json
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
ALTERNATIVES = ("oneOf", "anyOf")
REFUSED = ("oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref")
"""Keywords that the root of a tool's schema may not have."""
MAX_DEPTH = 8
MAX_QUOTED = 1500
MAX_STEPS = 10_000
"""Branches and properties of them that are folded. A root whose references multiply beyond names no properties."""


def object_schema(schema: Any) -> Schema | None:
    """The schema of a tool's arguments; None where a request is never an object."""
    if not isinstance(schema, dict):
        return {"type": "object"}
    if not _takes_objects(schema):
        return None
    if not any(keyword in schema for keyword in REFUSED):
        return {**schema, "type": "object"}
    folding = _Folding(schema)
    properties, required = folding.folded(schema, 0)
    rest = {keyword: value for keyword, value in schema.items() if keyword not in REFUSED}
    folded = {**rest, "type": "object", "properties": properties, "required": sorted(required)}
    if properties.keys() - _object(schema.get("properties")).keys():
        folded.pop("additionalProperties", None)  # it did not mean properties of other branches
    quoted = json.dumps({keyword: schema[keyword] for keyword in REFUSED if keyword in schema})
    if len(quoted) <= MAX_QUOTED:
        folded["description"] = f"{schema.get('description', '')} Must also fit: {quoted}".strip()
    text = json.dumps(folded | {"description": ""})
    is_cut_off = any(f'"#/{keyword}/' in text for keyword in REFUSED)  # a reference into what is no longer there
    if is_cut_off or folding.steps > MAX_STEPS:
        return {"type": "object", "description": folded.get("description", "")}
    return folded


def _takes_objects(schema: Schema) -> bool:
    kind = schema.get("type", "object")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


class _Folding:
    """One schema's. `steps` beyond MAX_STEPS: it was given up."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.steps = 0

    def folded(self, schema: Schema, depth: int) -> tuple[Schema, set[str]]:
        """Properties that an object may have, and those that it must."""
        properties = dict(_object(schema.get("properties")))
        required = {name for name in _list(schema.get("required")) if isinstance(name, str)}
        self.steps += 1 + len(properties)
        if depth == MAX_DEPTH or self.steps > MAX_STEPS:
            return properties, required
        for branch in self._all_of(schema):
            more, needed = self.folded(branch, depth + 1)
            self._join(properties, more, "allOf")
            required |= needed
        for keyword in ALTERNATIVES:
            branches = [self.folded(branch, depth + 1) for branch in _objects(schema.get(keyword))]
            alternatives: Schema = {}
            for more, _ in branches:
                self._join(alternatives, more, "anyOf")
            for name, value in alternatives.items():
                properties.setdefault(name, value)
            if branches:
                required |= set.intersection(*(needed for _, needed in branches))
        return properties, required

    def _all_of(self, schema: Schema) -> Iterator[Schema]:
        yield from _objects(schema.get("allOf"))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target: Any = self._root
            for step in reference[2:].split("/"):
                target = _object(target).get(step.replace("~1", "/").replace("~0", "~"))
            if isinstance(target, dict):
                yield target

    def _join(self, properties: Schema, more: Schema, keyword: str) -> None:
        self.steps += len(more)
        for name, value in more.items():
            _join(properties, name, value, keyword)


def _join(properties: Schema, name: str, value: Any, keyword: str) -> None:
    """Values side by side: one inside the other, they are soon deeper than readers of JSON go."""
    known = properties.setdefault(name, value)
    is_joined = isinstance(known, dict) and known.keys() == {keyword}
    joined = (_list(known[keyword]) if is_joined else []) or [known]
    if known != value and value not in joined:
        properties[name] = {keyword: [*joined, value]}


def _objects(branches: Any) -> list[Schema]:
    return [one for one in _list(branches) if isinstance(one, dict) and _takes_objects(one)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: Any) -> Schema:
    return value if isinstance(value, dict) else {}
