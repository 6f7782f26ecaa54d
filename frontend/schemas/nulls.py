"""Optional properties sent as null: dropped where the schema forbids null (docs/decisions.md, "Discovery and results").

Looks where a property's schema is plain to find: `properties`, `items` and local `$ref`, at any depth. What other
keywords say about a property is left to validation. Never changes the value it is given.
"""

from typing import Any
from urllib.parse import unquote

from jsonschema_rs import ValidatorMap


class _Shape:
    """What to drop from one object, and where to look further."""

    __slots__ = ("droppable", "inside", "items")

    def __init__(self) -> None:
        self.droppable: tuple[str, ...] = ()
        self.inside: dict[str, _Shape] = {}
        self.items: _Shape | None = None


class NullDropper:
    """Knows the droppable properties of one schema. `validators` holds a validator for each of its subschemas."""

    def __init__(self, schema: dict[str, Any], validators: ValidatorMap) -> None:
        self._schema = schema
        self._validators = validators
        self._shapes: dict[str, _Shape] = {}
        self._root = self._shape("#", schema)
        self._is_idle = not any(shape.droppable for shape in self._shapes.values())

    def drop(self, value: Any) -> Any:
        """`value`, or a copy without the nulls that its schema forbids."""
        return value if self._is_idle else _drop(value, self._root)

    def _shape(self, pointer: str, schema: Any) -> _Shape:
        pointer, schema = self._target(pointer, schema)
        known = self._shapes.get(pointer)
        if known is not None:
            return known
        shape = self._shapes[pointer] = _Shape()
        if not isinstance(schema, dict):
            return shape
        properties = schema.get("properties", {})
        required = schema.get("required", ())
        places = {name: f"{pointer}/properties/{_escaped(name)}" for name in properties}
        shape.droppable = tuple(
            name for name, place in places.items() if name not in required and not self._allows_null(place)
        )
        shape.inside = {name: self._shape(place, properties[name]) for name, place in places.items()}
        if "items" in schema:
            shape.items = self._shape(f"{pointer}/items", schema["items"])
        return shape

    def _target(self, pointer: str, schema: Any) -> tuple[str, Any]:
        """Where a chain of local references ends; a reference beside `properties` is left to validation."""
        seen: set[str] = set()
        while isinstance(schema, dict) and "$ref" in schema and "properties" not in schema and pointer not in seen:
            seen.add(pointer)
            pointer = unquote(schema["$ref"])
            schema = _at(self._schema, pointer)
        return pointer, schema

    def _allows_null(self, pointer: str) -> bool:
        validator = self._validators.get(pointer)
        return validator is None or validator.is_valid(None)


def _at(schema: Any, reference: str) -> Any:
    """The subschema that `#/…` names, None for anything else (an anchor, say)."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _drop(value: Any, shape: _Shape) -> Any:
    if isinstance(value, dict):
        kept = value
        for name in shape.droppable:
            if name in value and value[name] is None:
                kept = dict(value) if kept is value else kept
                del kept[name]
        for name, inner in shape.inside.items():
            if name in kept and (item := _drop(kept[name], inner)) is not kept[name]:
                kept = dict(value) if kept is value else kept
                kept[name] = item
        return kept
    if isinstance(value, list) and shape.items is not None:
        items = [_drop(item, shape.items) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
