"""The answers of an operation: which statuses are success, and the shape of the one body that is simple to say."""

from typing import Any

from importing.openapi.document import ApiOperation
from importing.openapi.schemas import Schema, SchemaConversion
from importing.refusal import LeftOut

MAX_MEMBERS = 40
_WAYS_ON = frozenset({"location", "link"})
_FLAT = (2,)
"""Levels of a flat object: its members have none below."""
_SIMPLE = frozenset({"string", "integer", "number", "boolean"})


def expected_of(operation: ApiOperation) -> list[int | str]:
    """Documented statuses of success, such as `[201]`; `[2xx]` where none is named."""
    found: list[int | str] = []
    for status in sorted(operation.responses):
        if status.upper() == "2XX":
            return ["2xx"]
        if status.startswith("2") and status.isascii() and status.isdecimal() and len(status) == len("200"):
            found.append(int(status))
    return found or ["2xx"]


def response_headers_of(operation: ApiOperation) -> list[str]:
    """Documented headers of success that say where to go on: `Location` and `Link`, as the document writes them."""
    found: dict[str, None] = {}
    for status, raw in sorted(operation.responses.items()):
        try:
            answer = operation.document.references.followed(raw) if status.startswith("2") else {}
        except LeftOut:
            continue
        headers = answer.get("headers")
        found |= (
            dict.fromkeys(name for name in headers if name.lower() in _WAYS_ON) if isinstance(headers, dict) else {}
        )
    return list(found)


def response_schema_of(operation: ApiOperation) -> dict[str, Any] | None:
    """A schema of the result (`status` and `body`), where one JSON answer of success is documented and its body is a
    flat object. Only types are asked for: an answer that is stricter than documented is no reason to fail a call that
    has had its effect. Every other status is accepted: the verifier judges it.
    """
    statuses = expected_of(operation)
    if len(statuses) != 1 or isinstance(statuses[0], str):
        return None
    document = operation.document
    try:
        answer = document.references.followed(operation.responses[str(statuses[0])])
        content = answer.get("content")
        if not isinstance(content, dict) or list(content) != ["application/json"]:
            return None
        raw = document.references.followed(content["application/json"]).get("schema")
        conversion = SchemaConversion(document.references, is_3_0=document.is_3_0, is_request=False)
        schema, notes = conversion.convert(raw, _FLAT)
    except LeftOut:
        return None
    body = None if notes else _flat(schema)
    if body is None:
        return None
    return {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"type": "integer"}},
        "if": {"properties": {"status": {"const": statuses[0]}}},
        "then": {"required": ["body"], "properties": {"body": body}},
    }


def _flat(schema: Schema) -> dict[str, Any] | None:
    """The types of an object whose members are texts, numbers and flags; None for any other schema."""
    if isinstance(schema, bool) or schema.get("type") != "object":
        return None
    if not schema.keys() <= {"type", "properties", "required", "description", "additionalProperties"}:
        return None
    members = {name: _types(one) for name, one in schema.get("properties", {}).items()}
    if not members or len(members) > MAX_MEMBERS or any(kinds is None for kinds in members.values()):
        return None
    flat: dict[str, Any] = {"type": "object"}
    if "required" in schema:
        flat["required"] = schema["required"]
    return flat | {"properties": {name: {"type": kinds} for name, kinds in members.items()}}


def _types(schema: Schema) -> list[str] | str | None:
    kind = None if isinstance(schema, bool) else schema.get("type")
    kinds = [kind] if isinstance(kind, str) else kind or []
    return kind if kinds and set(kinds) <= _SIMPLE | {"null"} else None
