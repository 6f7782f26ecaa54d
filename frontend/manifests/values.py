"""A request's values where a template puts them: as text, or refused with their place.

Shared by what renders URLs, headers and bodies. A refusal names the property and a rule, never the value.
"""

from typing import Any, NoReturn

from frontend.errors import GateError
from ipc.texts.canonical import canonical_bytes

_CHARACTERS = r"(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
NAME = rf"{_CHARACTERS}(?:[.-]{_CHARACTERS})*"
"""A property's name as a template writes it: every other character is percent-encoded, as in `{filter%5Bstate%5D}`."""


def refuse_value(name: str, rule: str) -> NoReturn:
    """Raises GateError schema_violation for the request's property `name`."""
    place = "/" + escaped_name(name) if name else "(body)"
    problem = f"can't be sent where the template puts it ({rule.replace('_', ' ')})"
    raise GateError("schema_violation", reason=f"{place}: {problem}")


def escaped_name(name: str) -> str:
    """One step of a JSON pointer (RFC 6901 §3)."""
    return name.replace("~", "~0").replace("/", "~1")


def scalar_text(name: str, value: Any) -> str:
    """A string as it is; a number or truth value as its canonical JSON. Raises GateError for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return canonical_bytes(value).decode()
    refuse_value(name, "required" if value is None else "type")
