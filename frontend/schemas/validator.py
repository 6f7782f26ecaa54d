"""Values against the schema of an action. A Validator is compiled once per load.

Guarantees that a refusal names a place and a rule, never a value, and that no pattern of a schema can run for long.
"""

from collections.abc import Iterator
from typing import Any, cast

import jsonschema_rs

from frontend.errors import GateError
from frontend.schemas.expectations import UNKNOWN, expectation
from frontend.schemas.nulls import NullDropper
from frontend.schemas.repetition import deepest, is_deeper
from ipc.limits import MAX_DEPTH_JSON
from ipc.texts.visible import visible

MAX_VIOLATIONS = 8
_SMALL = 64
_LEAST_DEPTH = 4
"""A schema with which shallower values could not be checked in a moment is refused."""
_MAX_POINTER_CHARACTERS = 200
_NAMES = ("properties", "dependentRequired", "dependentSchemas")


class SchemaRefused(ValueError):
    """A schema that can't be used. The message is for its author."""


class Validator:
    """One compiled schema. `accept` is what a request goes through; both raise GateError schema_violation."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises SchemaRefused for a schema that does not compile, or with which no check would end."""
        try:
            self._deepest = deepest(schema)
        except RecursionError:
            raise SchemaRefused("its parts lead to each other by too many steps") from None
        if self._deepest < _LEAST_DEPTH:
            raise SchemaRefused("so many ways lead to one part of it that a check would not end")
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
        self._check_depth(value)
        value = self._nulls.drop(value)
        self.validate(value)
        return value

    def validate(self, value: Any) -> None:
        """Raises GateError schema_violation with `reason` "<JSON pointer>: <expectation>", never with the value; with
        `violations` where a small value breaks the schema more than once.

        A name that the schema does not know is the caller's own text: the answer shows it, evidence and log show `*`.
        """
        self._check_depth(value)
        try:
            self._compiled.validate(value)
            return
        except jsonschema_rs.ValidationError as error:
            place, expected = _violations(error)[0]
        # Raised here: the validator's exception holds the value, and would be the context of this one.
        known = [step if isinstance(step, int) or step in self._names else "*" for step in place]
        reason = f"{_pointer(place)}: {expected}"
        others = self._all(value) if _is_small(value) else []
        more: dict[str, Any] = {"violations": others} if len(others) > 1 else {}
        raise GateError("schema_violation", cause=f"{_pointer(known)}: {expected}", reason=reason, **more)

    def _check_depth(self, value: Any) -> None:
        if self._deepest < MAX_DEPTH_JSON and is_deeper(value, self._deepest):
            raise GateError("schema_violation", reason=f"(body): at most {self._deepest} levels, for this schema")

    def _all(self, value: Any) -> list[str]:
        """The violations of a small value, at most MAX_VIOLATIONS, in the order in which they are found."""
        violations = [
            f"{_pointer(place)}: {expected}"
            for error in self._compiled.iter_errors(value)
            for place, expected in _violations(error)
        ]
        return list(dict.fromkeys(violations))[:MAX_VIOLATIONS]


def _violations(error: jsonschema_rs.ValidationError) -> list[tuple[list[str | int], str]]:
    """Places and expectations of one error: the property that is missing, or each that should not be there, is the
    place, not the object around it."""
    place, kind = list(error.instance_path), cast(Any, error.kind)
    expected = expectation(kind)
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return [([*place, str(kind.property)], expected)]
    if kind.name in UNKNOWN:
        return [([*place, str(name)], expected) for name in kind.unexpected[:MAX_VIOLATIONS]] or [(place, expected)]
    return [(place, expected)]


def _is_small(value: Any) -> bool:
    """True for at most _SMALL members and items: the validator finds every violation before it tells the first."""
    left, waiting = _SMALL, [value]
    while waiting:
        one = waiting.pop()
        inside = list(one.values()) if isinstance(one, dict) else one if isinstance(one, list) else []
        left -= len(inside)
        if left < 0:
            return False
        waiting += inside
    return True


def _pointer(place: list[str | int]) -> str:
    """The place for people: a JSON pointer, cut, with plain characters only."""
    steps = (visible(str(step)[:_MAX_POINTER_CHARACTERS]) for step in place)
    pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
    return pointer[:_MAX_POINTER_CHARACTERS] or "(body)"


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
