"""Optional properties sent as null: dropped where the schema forbids null.

The reason stands in docs/decisions/clients.md, "Discovery and results".

Looks wherever a schema reaches a property: `properties`, `patternProperties`, `additionalProperties` with a schema,
`items`, `prefixItems`, `dependentSchemas`, `allOf`, local `$ref`, the branch that `if` chooses, and branches of `anyOf`
and `oneOf` where dropping can mean one thing alone. Never changes the value it is given, or drops from a valid one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import jsonschema_rs
from jsonschema_rs import ValidatorMap

from ipc.texts.pointers import value_at

_SAME_VALUE = ("allOf", "anyOf", "oneOf")


@dataclass(eq=False, slots=True)
class _PropertySchema:
    """The schema of one property: whether null fits it, and where to look inside."""

    shape: "_Shape"
    allows_null: bool


@dataclass(eq=False, slots=True)
class _Shape:
    """One subschema as far as it reaches properties."""

    validator: Any
    required: frozenset[str] = frozenset()
    named: dict[str, _PropertySchema] = field(default_factory=dict)
    patterns: list[tuple[Any, _PropertySchema]] = field(default_factory=list)
    others: _PropertySchema | None = None
    prefix: "list[_Shape]" = field(default_factory=list)
    items: "_Shape | None" = None
    also: "list[_Shape]" = field(default_factory=list)
    """Shapes that hold for the same value."""
    choices: "list[list[_Shape]]" = field(default_factory=list)
    conditions: "list[tuple[_Shape, _Shape, _Shape]]" = field(default_factory=list)
    """`if`, `then`, `else`."""
    dependent: "dict[str, _Shape]" = field(default_factory=dict)
    all: "tuple[_Shape, ...]" = ()
    """This shape and those that hold whenever it does."""
    is_conditional: bool = False
    """Some of these depend on the value."""

    def finish(self) -> None:
        """Work out what follows from the rest, once every shape has been read."""
        found: dict[_Shape, None] = {}
        waiting = [self]
        while waiting:
            shape = waiting.pop()
            if shape not in found:
                found[shape] = None
                waiting += shape.also
        self.all = tuple(found)
        self.is_conditional = any(one.choices or one.conditions or one.dependent for one in found)

    def declared(self) -> Iterator[_PropertySchema]:
        """Every schema of a property that stands here."""
        yield from self.named.values()
        yield from (place for _, place in self.patterns)
        if self.others is not None:
            yield self.others

    def places(self, name: str) -> list[_PropertySchema]:
        """The schemas that a property of this name has to fit."""
        places = [place for pattern, place in self.patterns if pattern.is_valid(name)] if self.patterns else []
        if (named := self.named.get(name)) is not None:
            places.append(named)
        elif not places and self.others is not None:
            places.append(self.others)
        return places


class NullDropper:
    """Knows the droppable properties of one schema. `validators` holds a validator for each of its subschemas."""

    def __init__(self, schema: dict[str, Any], validators: ValidatorMap) -> None:
        self._schema = schema
        self._validators = validators
        self._shapes: dict[str, _Shape] = {}
        self._root = self._shape("#", schema)
        for shape in self._shapes.values():
            shape.finish()
        places = [place for shape in self._shapes.values() for place in shape.declared()]
        self._is_idle = all(place.allows_null for place in places)

    def drop(self, value: Any) -> Any:
        """`value`, or a copy without the nulls that its schema forbids."""
        if self._is_idle or not _has_null_member(value) or _fits(self._root, value):
            return value
        return _Dropping().of(value, self._root)

    def _shape(self, pointer: str, schema: Any) -> _Shape:
        known = self._shapes.get(pointer)
        if known is not None:
            return known
        shape = self._shapes[pointer] = _Shape(self._validators.get(pointer))
        if isinstance(schema, dict):
            self._read_members(shape, pointer, schema)
            self._read_items(shape, pointer, schema)
            self._read_combined(shape, pointer, schema)
        return shape

    def _read_members(self, shape: _Shape, pointer: str, schema: dict[str, Any]) -> None:
        shape.required = frozenset(schema.get("required", ()))
        for name, inner in schema.get("properties", {}).items():
            shape.named[name] = self._place(f"{pointer}/properties/{_escaped(name)}", inner)
        for pattern, inner in schema.get("patternProperties", {}).items():
            place = self._place(f"{pointer}/patternProperties/{_escaped(pattern)}", inner)
            options = jsonschema_rs.RegexOptions()
            shape.patterns.append(
                (jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options), place)
            )
        if isinstance(others := schema.get("additionalProperties"), dict):  # false refuses a name, not a null
            shape.others = self._place(f"{pointer}/additionalProperties", others)

    def _read_items(self, shape: _Shape, pointer: str, schema: dict[str, Any]) -> None:
        for number, inner in enumerate(schema.get("prefixItems", ())):
            shape.prefix.append(self._shape(f"{pointer}/prefixItems/{number}", inner))
        if "items" in schema:
            shape.items = self._shape(f"{pointer}/items", schema["items"])

    def _read_combined(self, shape: _Shape, pointer: str, schema: dict[str, Any]) -> None:
        branches = {
            keyword: [self._shape(f"{pointer}/{keyword}/{number}", one) for number, one in enumerate(schema[keyword])]
            for keyword in _SAME_VALUE
            if keyword in schema
        }
        shape.also += branches.pop("allOf", [])
        shape.choices += branches.values()
        if "$ref" in schema:
            target = unquote(schema["$ref"])
            shape.also.append(self._shape(target, _at(self._schema, target)))
        if "if" in schema:
            one, two, three = (self._shape(f"{pointer}/{key}", schema.get(key)) for key in ("if", "then", "else"))
            shape.conditions.append((one, two, three))
        for name, inner in schema.get("dependentSchemas", {}).items():
            shape.dependent[name] = self._shape(f"{pointer}/dependentSchemas/{_escaped(name)}", inner)

    def _place(self, pointer: str, schema: Any) -> _PropertySchema:
        shape = self._shape(pointer, schema)
        return _PropertySchema(shape, shape.validator is None or shape.validator.is_valid(None))


class _Dropping:
    """One value on its way through the shapes; each of its parts meets each shape once."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, _Shape], tuple[Any, Any]] = {}

    def of(self, value: Any, shape: _Shape) -> Any:
        """`value` without the nulls that `shape` forbids."""
        if not isinstance(value, dict | list):
            return value
        if not shape.is_conditional:
            return self._plain(value, shape)
        key = (id(value), shape)
        if key not in self._done:
            self._done[key] = (value, value)  # a shape that leads back to itself says nothing new
            self._done[key] = (value, self._conditional(self._plain(value, shape), shape))
        return self._done[key][1]

    def _plain(self, value: Any, shape: _Shape) -> Any:
        for one in shape.all:
            value = self._members(value, one, shape.all) if isinstance(value, dict) else self._items(value, one)
        return value

    def _conditional(self, value: Any, shape: _Shape) -> Any:
        for one in shape.all:
            for branches in one.choices:
                value = self._chosen(value, branches)
            for condition, then, otherwise in one.conditions:
                value = self.of(value, then if _fits(condition, value) else otherwise)
            for name, inner in one.dependent.items():
                value = self.of(value, inner) if isinstance(value, dict) and name in value else value
        return value

    def _members(self, value: dict[str, Any], shape: _Shape, together: tuple[_Shape, ...]) -> dict[str, Any]:
        kept = value
        for name, item in value.items():
            for place in shape.places(name):
                if item is None:
                    if not place.allows_null and not any(name in one.required for one in together):
                        kept = dict(value) if kept is value else kept
                        kept.pop(name, None)
                elif (new := self.of(item, place.shape)) is not item:
                    kept = dict(value) if kept is value else kept
                    kept[name] = item = new
        return kept

    def _items(self, value: list[Any], shape: _Shape) -> list[Any]:
        first = len(shape.prefix)
        if not first and shape.items is None:
            return value
        kept = [self.of(item, inner) for item, inner in zip(value, shape.prefix, strict=False)]
        kept += value[first:] if shape.items is None else [self.of(item, shape.items) for item in value[first:]]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept

    def _chosen(self, value: Any, branches: list[_Shape]) -> Any:
        """`value` without the nulls that the branches forbid, if all branches that it then fits agree."""
        if any(_fits(branch, value) for branch in branches):
            return value
        fitting = [one for branch in branches if _fits(branch, one := self.of(value, branch))]
        return fitting[0] if fitting and all(one == fitting[0] for one in fitting) else value


def _fits(shape: _Shape, value: Any) -> bool:
    return shape.validator is not None and shape.validator.is_valid(value)


def _has_null_member(value: Any) -> bool:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if None in one.values():
                return True
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return False


def _at(schema: Any, reference: str) -> Any:
    """The subschema that `#/…` names, None for anything else (an anchor, say)."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    try:
        return value_at(schema, reference)
    except LookupError:
        return None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
