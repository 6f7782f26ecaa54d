"""response_schema: the provider's output has the shape that its action promises.

Validators are compiled once for each schema and kept. Guarantees that a refusal names a place and a rule and never the
value, that no schema fetches anything, and that no pattern in it can run for long.
"""

from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from workers.verifiers.evidence import Evidence, Unverified

MAX_VALIDATORS = 64
_MAX_PLACE_CHARACTERS = 200


class SchemaViolated(Exception):
    """The output does not fit; the message is "<JSON pointer>: <keyword>"."""


def check_schema(schema: str, value: object) -> None:
    """Raises SchemaViolated. `schema` is JSON text (draft 2020-12) that was checked when the manifest was loaded."""
    try:
        validator = _validator(schema)
    except ValueError:
        raise SchemaViolated("(schema): does not compile") from None
    try:
        validator.validate(value)
        return
    except jsonschema_rs.ValidationError as error:
        steps = (str(step).replace("~", "~0").replace("/", "~1") for step in error.instance_path)
        place = "".join("/" + step for step in steps)[:_MAX_PLACE_CHARACTERS] or "(output)"
        keyword = error.kind.name
    # Raised here: the validator's exception holds the value, and would be the context of this one.
    raise SchemaViolated(f"{place}: {keyword}")


def verify_response_schema(evidence: Evidence) -> dict[str, Any]:
    """Evidence `{kind, valid}`. The schema is `verification_config.schema`, or the manifest's own."""
    given = evidence.config.get("schema")
    schema = msgspec.json.encode(given).decode() if given is not None else evidence.plan.response_schema
    if schema is None:
        raise Unverified("there is no schema to verify with")
    try:
        check_schema(schema, evidence.output)
    except SchemaViolated as error:
        raise Unverified(f"the output does not fit: {error}") from None
    return {"kind": "response_schema", "valid": True}


@lru_cache(maxsize=MAX_VALIDATORS)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    """Raises ValueError. Shared calls ask in several threads at once."""
    return jsonschema_rs.Draft202012Validator(
        msgspec.json.decode(schema), validate_formats=True, offline=True, pattern_options=jsonschema_rs.RegexOptions()
    )
