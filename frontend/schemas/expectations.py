"""The expectation of a schema, as the end of a sentence about a place: "must be a string". Never the value that did not
fit.

The sentence comes from the schema alone, which is public (`GET /v1/actions/{action_id}/schema/request`).
"""

import json
from collections.abc import Callable
from typing import Any, Final

UNKNOWN: Final = frozenset({"additionalProperties", "unevaluatedProperties"})
"""Keywords that refuse a property for its name."""
MAX_CHARACTERS: Final = 200

_ARTICLES: Final = {"integer": "an integer", "array": "an array", "object": "an object", "null": "null"}

_SENTENCES: Final[dict[str, Callable[[Any], str]]] = {
    # keyword -> from what the schema says with it
    "required": lambda _: "is missing",
    "type": lambda types: "must be " + " or ".join(_ARTICLES.get(one, f"a {one}") for one in types),
    "maxLength": lambda limit: f"must have at most {limit} characters",
    "minLength": lambda limit: f"must have at least {limit} characters",
    "maxItems": lambda limit: f"must have at most {limit} items",
    "minItems": lambda limit: f"must have at least {limit} items",
    "maxProperties": lambda limit: f"must have at most {limit} properties",
    "minProperties": lambda limit: f"must have at least {limit} properties",
    "maximum": lambda limit: f"must be at most {limit}",
    "minimum": lambda limit: f"must be at least {limit}",
    "exclusiveMaximum": lambda limit: f"must be less than {limit}",
    "exclusiveMinimum": lambda limit: f"must be more than {limit}",
    "multipleOf": lambda unit: f"must be a multiple of {unit}",
    "enum": lambda options: "must be one of " + json.dumps(options),
    "const": lambda value: "must be " + json.dumps(value),
    "pattern": lambda pattern: f"must match {json.dumps(pattern)}",
    "format": lambda name: f"must be of the format {name}",
    "uniqueItems": lambda _: "must have no item twice",
    **dict.fromkeys(UNKNOWN, lambda _: "unknown property"),
}  # fmt: skip


def expectation(kind: Any) -> str:
    """The sentence for a kind of violation of jsonschema-rs; the keyword's name if there is no sentence for it."""
    sentence = _SENTENCES.get(kind.name)
    said = f"does not fit the schema's {kind.name}" if sentence is None else sentence(kind.value)
    return said[:MAX_CHARACTERS]
