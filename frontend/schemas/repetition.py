"""How deep a value may be for a check against a JSON Schema to end in a moment, where several ways lead to one part.

SECURITY: of 26 definitions that each refer twice to the next, a validator takes the last one 2^26 times for a single
value, which takes ten seconds. So does a tree whose node leads back to itself twice, for a value that is 26 deep: a
caller would choose how long the front stands still.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from ipc.limits import MAX_DEPTH_JSON
from ipc.texts.pointers import value_at

MOST_REPETITIONS: Final = 1_000_000
"""A tenth of a second."""
_HERE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
"""Keywords whose schemas are for the same value."""
_HERE_BY_NAME: Final = ("dependentSchemas",)
_BELOW: Final = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains", "unevaluatedItems",
    "prefixItems",
)  # fmt: skip
"""Keywords whose schemas are for its members."""
_BELOW_BY_NAME: Final = ("properties", "patternProperties")
_REFERENCES: Final = ("$ref", "$dynamicRef")

_Schemas = dict[int, tuple[list[int], list[int]]]
"""By identity of a schema: those for the value's members, and those for the value itself."""


def deepest(schema: dict[str, Any]) -> int:
    """How many levels of objects and lists a value may have: MAX_DEPTH_JSON if the schema sets no bound, -1 if no
    value may be checked. Raises RecursionError."""
    schemas = _read(schema)
    before = dict.fromkeys(schemas, 1)
    for depth in range(MAX_DEPTH_JSON + 1):
        counts: dict[int, int] = {}
        for one in schemas:
            _count(one, schemas, before, counts)
        if counts[id(schema)] > MOST_REPETITIONS:
            return depth - 1
        if counts == before:
            break
        before = counts
    return MAX_DEPTH_JSON


def is_deeper(value: Any, most: int) -> bool:
    """True for a value with more levels than `most`."""
    if not isinstance(value, dict | list):
        return most < 0
    return most < 1 or any(is_deeper(item, most - 1) for item in (value.values() if isinstance(value, dict) else value))


def _count(one: int, schemas: _Schemas, before: dict[int, int], counts: dict[int, int]) -> int:
    """How often, at most, parts of a schema are taken at one place of a value. `before`: for values of a level less."""
    if one not in counts:
        counts[one] = 1  # for what leads back here without a member between
        below, here = schemas[one]
        count = max((before[other] for other in below), default=0 if here else 1)
        count += sum(_count(other, schemas, before, counts) for other in here)
        counts[one] = min(count, MOST_REPETITIONS + 1)
    return counts[one]


def _read(root: dict[str, Any]) -> _Schemas:
    found = list(_objects(root))
    anchors: dict[str, Any] = {}
    for one in found:
        for name in (one.get("$anchor"), one.get("$dynamicAnchor")):
            if isinstance(name, str):
                anchors.setdefault(name, one)
    return {
        id(one): (
            [id(part) for part in _parts(one, _BELOW, _BELOW_BY_NAME) if isinstance(part, dict)],
            [
                id(part)
                for part in (*_parts(one, _HERE, _HERE_BY_NAME), *_referred(one, root, anchors))
                if isinstance(part, dict)
            ],
        )
        for one in found
    }


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _objects(item)


def _parts(schema: dict[str, Any], keywords: tuple[str, ...], by_name: tuple[str, ...]) -> Iterator[Any]:
    """The schemas below these keywords, which may be lists."""
    for value in (schema.get(keyword) for keyword in keywords):
        yield from value if isinstance(value, list) else [value]
    for value in (schema.get(keyword) for keyword in by_name):
        if isinstance(value, dict):
            yield from value.values()


def _referred(schema: dict[str, Any], root: dict[str, Any], anchors: dict[str, Any]) -> Iterator[Any]:
    for reference in (schema.get(keyword) for keyword in _REFERENCES):
        if not isinstance(reference, str) or not reference.startswith("#"):
            continue
        fragment = unquote(reference[1:])
        try:
            yield value_at(root, fragment) if fragment[:1] in ("", "/") else anchors.get(fragment)
        except LookupError:
            continue  # told where the schema is checked
