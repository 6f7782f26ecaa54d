"""Values against the schema of an action. A Validator is compiled once per load.

Guarantees that a refusal names a place and a rule, never a value, and that no pattern of a schema can run for long.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from frontend.errors import GateError
from frontend.schemas.nulls import NullDropper

_MAX_POINTER_CHARACTERS = 200
_NAMES = ("properties", "dependentRequired", "dependentSchemas")


class SchemaRefused(ValueError):
    """A schema that can't be used. The message is for its author."""


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
