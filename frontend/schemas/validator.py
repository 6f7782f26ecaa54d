"""Bodies from outside: strict JSON, then the action's schema.

parse_body accepts I-JSON (RFC 7493) and nothing else: UTF-8, no duplicate keys, no NaN or infinity, numbers that a
double holds exactly, bounded depth. A Validator is compiled once per load. Guarantees that a refusal names a place and
a rule, never a value, and that no pattern of a schema can run for long.
"""

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import jsonschema_rs
import msgspec

from frontend.errors import GateError
from frontend.schemas.nulls import NullDropper
from ipc.limits import MAX_DEPTH_JSON

MAX_INTEGER = 2**53 - 1
"""RFC 7493 §2.2: beyond it, not every reader sees the same number."""

_decode = msgspec.json.Decoder().decode
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_STRINGS_AND_COLONS = re.compile(rb'"(?:[^"\\]++|\\.)*+"([ \t\r\n]*+:)?', re.DOTALL)
_PLANE_ENDS = "".join(chr(plane * 0x10000 + end) for plane in range(17) for end in (0xFFFE, 0xFFFF))
_NONCHARACTER = re.compile(f"[\ufdd0-\ufdef{_PLANE_ENDS}]")
_MAX_POINTER_CHARACTERS = 200
_NAMES = ("properties", "dependentRequired", "dependentSchemas")


class SchemaRefused(ValueError):
    """A schema that can't be used. The message is for its author."""


def parse_body(body: bytes) -> Any:
    """The JSON value of a body; a missing body is `{}` (docs/decisions.md, "Discovery and results").

    Raises GateError schema_violation with a `reason` that never holds the value.
    """
    if not body:
        return {}
    try:
        value = _decode(body)
    except msgspec.ValidationError:
        _refuse("number_range")
    except RecursionError:
        _refuse("depth")
    except UnicodeDecodeError:
        _refuse("utf8")
    except msgspec.DecodeError:
        _refuse("json")
    _check_structure(body, value)
    if _LONG_NUMBER.search(body):
        _check_integers(value)
    if not body.isascii() or b"\\u" in body:
        _check_characters(value)
    return value


class Validator:
    """One compiled schema. `accept` is what a request goes through; both raise GateError schema_violation."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises SchemaRefused for a schema that does not compile."""
        options: dict[str, Any] = {
            "validate_formats": True,
            "ignore_unknown_formats": False,
            "offline": True,
            # SECURITY: an automaton without backtracking; no pattern can be made to run for long.
            "pattern_options": jsonschema_rs.RegexOptions(),
        }
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(schema, **options)
            self._nulls = NullDropper(schema, jsonschema_rs.validator_map_for(schema, **options))
        except ValueError as error:
            raise SchemaRefused(str(error).partition("\n")[0]) from None
        self._names = frozenset(_names_in(schema))

    def accept(self, value: Any) -> Any:
        """`value` without the optional nulls that the schema forbids, once the rest holds."""
        value = self._nulls.drop(value)
        self.validate(value)
        return value

    def validate(self, value: Any) -> None:
        """Raises GateError schema_violation with `reason` "<JSON pointer>: <keyword>", never with the value."""
        try:
            self._compiled.validate(value)
            return
        except jsonschema_rs.ValidationError as error:
            place = list(error.instance_path)
            if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Required):
                place.append(error.kind.property)
            reason = f"{self._pointer(place)}: {error.kind.name}"
        # Raised here: the validator's exception holds the value, and would be the context of ours.
        raise GateError("schema_violation", reason=reason)

    def _pointer(self, place: list[str | int]) -> str:
        """The place for people. A name that the schema does not know is the caller's text: it shows as `*`."""
        steps = (str(step) if isinstance(step, int) or step in self._names else "*" for step in place)
        pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
        return pointer[:_MAX_POINTER_CHARACTERS] or "(body)"


def _refuse(rule: str) -> NoReturn:
    raise GateError("schema_violation", reason=f"(body): {rule}") from None


def _check_structure(body: bytes, value: Any) -> None:
    """Depth and duplicate keys. The decoder keeps the last of two members, so fewer keys than colons are left."""
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    keys = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH_JSON:
            _refuse("depth")
        below: list[Any] = []
        for container in level:
            if type(container) is dict:
                keys += len(container)
                container = container.values()
            below += [item for item in container if type(item) is dict or type(item) is list]
        level = below
    if body.count(b":") != keys and len(list(filter(None, _STRINGS_AND_COLONS.findall(body)))) != keys:
        _refuse("duplicate_key")


def _check_integers(value: Any) -> None:
    for item in _leaves(value):
        if type(item) is int and not -MAX_INTEGER <= item <= MAX_INTEGER:
            _refuse("number_range")


def _check_characters(value: Any) -> None:
    if _NONCHARACTER.search(msgspec.json.encode(value).decode()):
        _refuse("noncharacter")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _names_in(schema: Any) -> Iterator[str]:
    """Every property name that a schema speaks of."""
    if isinstance(schema, list):
        for item in schema:
            yield from _names_in(item)
    elif isinstance(schema, dict):
        for keyword, item in schema.items():
            if keyword in _NAMES and isinstance(item, dict):
                yield from item
            if keyword == "required" and isinstance(item, list):
                yield from (name for name in item if isinstance(name, str))
            yield from _names_in(item)
