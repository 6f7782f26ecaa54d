"""Questions to the schema of a request: which values a property may have, as far as `type` says it.

Only keywords that stand in the schema itself count, which the validator always enforces; references are not followed.
"""

from typing import Any

_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def is_object(schema: Any) -> bool:
    """True for a schema that takes objects and nothing else."""
    return isinstance(schema, dict) and schema.get("type") == "object"


def properties_of(schema: Any) -> dict[str, Any]:
    """The declared properties of an object."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Any) -> list[Any]:
    """Names of the properties that an object must have."""
    names = schema.get("required") if isinstance(schema, dict) else None
    return names if isinstance(names, list) else []


def may_be_scalar(schema: Any) -> bool:
    """False only where `type` says that the value is no text, number or flag."""
    types = _types(schema)
    return types is None or not _SCALARS.isdisjoint(types)


def may_be_list(schema: Any) -> bool:
    """True for a schema that takes lists of texts, numbers and flags."""
    return "array" in (_types(schema) or ()) and may_be_scalar(schema.get("items"))


def may_be_flat_object(schema: Any) -> bool:
    """True for a schema that takes objects of texts, numbers and flags, whose names it lists."""
    if "object" not in (_types(schema) or ()) or schema.get("additionalProperties") is not False:
        return False
    return "patternProperties" not in schema and all(map(may_be_scalar, properties_of(schema).values()))


def may_be_open_object(schema: Any) -> bool:
    """True unless the schema refuses objects whose names it does not list."""
    types = _types(schema)
    return types is None or ("object" in types and not may_be_flat_object(schema))


def _types(schema: Any) -> set[Any] | None:
    """The types that a schema allows; None where it does not say."""
    types = schema.get("type") if isinstance(schema, dict) else None
    return (
        None
        if types is None
        else {item for item in (types if isinstance(types, list) else [types]) if isinstance(item, str)}
    )
