"""Schemas of a document as JSON Schema 2020-12 that the gateway takes: references resolved, nothing left to look up.

OpenAPI 3.0 has a dialect of its own (`nullable`, exclusive bounds as flags). Only keywords that are known are taken;
where one can't be, or a schema refers to itself, the result accepts more than the document, and a note says so.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from frontend.schemas.ambiguity import refuse_exponential
from frontend.schemas.pattern import PatternRefused
from frontend.schemas.regexes import parse_pattern
from frontend.schemas.validator import SchemaRefused, Validator
from importing.openapi.references import References
from importing.refusal import LeftOut
from importing.words import one_line

DEPTHS = (20, 8, 5, 3, 2)
"""Levels to which a schema is written out; the next where it is too large."""
MAX_SCHEMAS = 1500
"""Subschemas of one request: more is nothing that a person reviews."""
MAX_REFERENCES = 100
"""References inside each other, which lead to no deeper level of the schema where nothing stands between them."""
MAX_DESCRIPTION = 400
_MAX_INTEGER = 2**53 - 1
_TYPES = ("null", "boolean", "object", "array", "number", "string", "integer")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
           "maxContains")  # fmt: skip
_EXCLUSIVE = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
_INSIDE = ("items", "not", "contains", "propertyNames", "if", "then", "else", "additionalProperties",
           "unevaluatedProperties", "unevaluatedItems")  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_BOUNDS = {"type", "enum", "minimum", "maximum", "multipleOf", *_COUNTS}
"""Keywords without which a schema accepts more."""
_COPIED = {"enum", "const", "default", "required", "dependentRequired"}
"""Keywords whose values are taken whole."""
_BASES = ("$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor")
Schema = dict[str, Any] | bool


class _TooLarge(Exception):
    """More subschemas than MAX_SCHEMAS."""


class SchemaConversion:
    """Conversion of the schemas of one document, for requests or for answers."""

    def __init__(self, references: References, *, is_3_0: bool, is_request: bool) -> None:
        self._references = references
        self._is_3_0 = is_3_0
        self._hidden = "readOnly" if is_request else "writeOnly"

    def convert(self, raw: Any, depths: tuple[int, ...] = DEPTHS) -> tuple[Schema, list[str]]:
        """The schema, written out to the first of these depths at which it is not too large, and notes for a reviewer.
        Raises LeftOut."""
        for depth in depths:
            once = _Once(self._references, self._hidden, depth, is_3_0=self._is_3_0)
            try:
                schema = once.schema(raw, (), 0)
            except _TooLarge:
                continue
            return schema, sorted(once.notes)
        raise LeftOut("its schema is too large")


class _Once:
    """One schema, written out to one depth."""

    def __init__(self, references: References, hidden: str, depth: int, *, is_3_0: bool) -> None:
        self.notes: set[str] = set()
        self._references = references
        self._hidden = hidden
        self._depth = depth
        self._is_3_0 = is_3_0
        self._count = 0

    def schema(self, raw: Any, trail: tuple[str, ...], depth: int) -> Schema:
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, dict):
            raise LeftOut("a schema is no mapping")
        self._count += 1
        if self._count > MAX_SCHEMAS:
            raise _TooLarge
        self._references.steps.count_breadth(raw)
        if isinstance(raw.get("$ref"), str):
            return self._referred(raw, trail, depth)
        if any(base in raw for base in _BASES):
            raise LeftOut("a schema moves the base of its references ($id, $anchor or $dynamicRef)")
        if depth >= self._depth:
            return self._cut(raw, f"cut below {self._depth} levels")
        out: dict[str, Any] = {}
        for name in _COPIED & raw.keys():
            self._references.steps.count_values(raw[name])
        _take_plain(raw, out)
        self.notes.update(
            f"without the {name} {one_line(str(raw[name]), 60)!a}, which JSON Schema does not have"
            for name in (_BOUNDS & raw.keys()) - out.keys()
            if raw[name] and not _is_beyond_json(raw[name])
        )
        self._take_patterns(raw, out, partial(self.schema, trail=trail, depth=depth + 1))
        self._take_inside(raw, out, partial(self.schema, trail=trail, depth=depth + 1))
        if self._is_3_0:
            return _without_dialect(raw, out)
        _take(raw, out, _EXCLUSIVE, _is_number)
        return out

    def _referred(self, raw: dict[str, Any], trail: tuple[str, ...], depth: int) -> Schema:
        """The target in its place. In 3.0 nothing stands beside a reference; in 3.1 both hold."""
        reference = raw["$ref"]
        if len(trail) >= MAX_REFERENCES:
            raise LeftOut(f"more than {MAX_REFERENCES} references inside each other")
        target = self._references.target(reference)
        if reference in trail:
            return self._cut(target, f"cut where {one_line(reference.rpartition('/')[2], 60)} refers to itself")
        found = self.schema(target, (*trail, reference), depth)
        beside = {} if self._is_3_0 else {name: value for name, value in raw.items() if name != "$ref"}
        other = self.schema(beside, trail, depth + 1) if beside else {}
        if isinstance(found, bool) or isinstance(other, bool) or not other:
            return found
        if other.keys() <= {"description", "default"}:
            return {**found, **other}
        return {"allOf": [found, other]}

    def _cut(self, raw: Any, note: str) -> Schema:
        self.notes.add(f"{note}: anything is accepted there")
        kind = raw.get("type") if isinstance(raw, dict) else None
        is_nullable = isinstance(raw, dict) and raw.get("nullable") is True
        return {"type": kind} if kind in _TYPES and not is_nullable else {}

    def _take_patterns(self, raw: dict[str, Any], out: dict[str, Any], schema: Callable[[Any], Schema]) -> None:
        pattern, named = raw.get("pattern"), raw.get("patternProperties")
        for one in (pattern, *(named if isinstance(named, dict) else ())):
            if isinstance(one, str):
                self._references.steps.count_pattern(one)
        if isinstance(pattern, str):
            if _is_pattern(pattern):
                out["pattern"] = pattern
            else:
                self.notes.add(f"without the pattern {one_line(pattern, 60)!a}, which the gateway does not run")
        if isinstance(named, dict) and all(map(_is_pattern, named)):
            out["patternProperties"] = {name: schema(value) for name, value in named.items()}
        elif named is not None:
            self.notes.add("without patternProperties that the gateway does not run")

    def _take_inside(self, raw: dict[str, Any], out: dict[str, Any], schema: Callable[[Any], Schema]) -> None:
        for name in _INSIDE:
            if isinstance(raw.get(name), dict | bool):
                out[name] = schema(raw[name])
        if "patternProperties" in raw and "patternProperties" not in out:
            out.pop("additionalProperties", None)
        for name in _LISTS:
            if isinstance(raw.get(name), list) and raw[name]:
                out[name] = [schema(one) for one in raw[name]]
        if isinstance(raw.get("dependentSchemas"), dict):
            out["dependentSchemas"] = {name: schema(one) for name, one in raw["dependentSchemas"].items()}
        members = raw.get("properties")
        if not isinstance(members, dict):
            return
        shown = {name: one for name, one in members.items() if not self._is_hidden(one)}
        out["properties"] = {name: schema(one) for name, one in shown.items()}
        if "required" in out:
            out["required"] = [name for name in out["required"] if name in shown or name not in members]

    def _is_hidden(self, raw: Any) -> bool:
        """True for a member that stands in answers alone, or in requests alone."""
        if not isinstance(raw, dict):
            return False
        if raw.get(self._hidden) is True:
            return True
        return isinstance(raw.get("$ref"), str) and self._references.followed(raw).get(self._hidden) is True


def _take_plain(raw: dict[str, Any], out: dict[str, Any]) -> None:
    """Keywords whose value is no schema, where it has the form that JSON Schema asks for."""
    kind = raw.get("type")
    if isinstance(kind, list) and (kinds := list(dict.fromkeys(one for one in kind if one in _TYPES))):
        out["type"] = kinds
    elif isinstance(kind, str) and kind in _TYPES:
        out["type"] = kind
    description = one_line(raw.get("description"), MAX_DESCRIPTION) or one_line(raw.get("title"), MAX_DESCRIPTION)
    if description:
        out["description"] = description
    if isinstance(raw.get("enum"), list) and raw["enum"]:
        out["enum"] = raw["enum"]
    if "const" in raw:
        out["const"] = raw["const"]
    if "default" in raw and isinstance(raw["default"], str | int | float | bool):
        out["default"] = raw["default"]
    _take(raw, out, _COUNTS, lambda value: _is_number(value) and isinstance(value, int) and value >= 0)
    _take(raw, out, ("minimum", "maximum"), _is_number)
    _take(raw, out, ("multipleOf",), lambda value: _is_number(value) and value > 0)
    _take(raw, out, ("uniqueItems",), lambda value: isinstance(value, bool))
    _take(raw, out, ("format",), lambda value: isinstance(value, str) and _is_format(value))
    required = raw.get("required")
    if isinstance(required, list) and (names := list(dict.fromkeys(one for one in required if isinstance(one, str)))):
        out["required"] = names
    if isinstance(raw.get("dependentRequired"), dict):
        out["dependentRequired"] = raw["dependentRequired"]


def _take(raw: dict[str, Any], out: dict[str, Any], names: Any, fits: Callable[[Any], bool]) -> None:
    out.update((name, raw[name]) for name in names if name in raw and fits(raw[name]))


def _without_dialect(raw: dict[str, Any], out: dict[str, Any]) -> Schema:
    """As 2020-12 says what 3.0 says with `nullable` and with flags beside a bound."""
    for flag, bound in _EXCLUSIVE.items():
        if raw.get(flag) is True and bound in out:
            out[flag] = out.pop(bound)
    if raw.get("nullable") is not True:
        return out
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]
    if "type" in out:
        out["type"] = [out["type"], "null"]
        return out
    return {"anyOf": [out, {"type": "null"}]} if out.keys() & {"allOf", "anyOf", "oneOf"} else out


def _is_number(value: Any) -> bool:
    """True for a number that JSON carries exactly everywhere (RFC 7493)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER


def _is_beyond_json(value: Any) -> bool:
    """True for a number that is no bound for any that JSON carries exactly."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > _MAX_INTEGER


@cache
def _is_format(name: str) -> bool:
    try:
        Validator({"format": name})
    except SchemaRefused:
        return False
    return True


@cache
def _is_pattern(pattern: str) -> bool:
    try:
        refuse_exponential(parse_pattern(pattern))
        Validator({"pattern": pattern})
    except (PatternRefused, SchemaRefused):
        return False
    return True
