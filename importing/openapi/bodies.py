"""The body of an operation: which kind is sent, and its members beside the parameters or all of it as `body`."""

from typing import Any

import msgspec

from importing.openapi.document import ApiOperation
from importing.openapi.schemas import Schema, SchemaConversion
from importing.refusal import LeftOut
from importing.words import one_line

JSON, FORM, TEXT = "body_template", "body_form", "body_text"
"""Members of the manifest's `template`."""
BODY = "body"
_FORM_TYPE = "application/x-www-form-urlencoded"
_PLAIN = frozenset({"type", "properties", "required", "description", "default"})
"""Keywords of an object whose members can stand among others."""


class Members(msgspec.Struct, frozen=True):
    """The members of an object, and which of them must be there."""

    properties: dict[str, Schema]
    required: tuple[str, ...]


class RequestBody(msgspec.Struct, frozen=True):
    """`kind` is the member of `template`; `members` is None where only the whole body can be said."""

    kind: str
    media_type: str
    schema: Schema
    is_required: bool
    members: Members | None
    notes: list[str] = msgspec.field(default_factory=list)


def body_of(operation: ApiOperation, conversion: SchemaConversion) -> RequestBody | None:
    """The body; None if the operation has none. Raises LeftOut."""
    raw = operation.raw.get("requestBody")
    if raw is None:
        return None
    followed = operation.document.references.followed(raw)
    content = followed.get("content")
    if not isinstance(content, dict) or not content:
        return None
    media_type, kind = _chosen(content)
    media = operation.document.references.followed(content[media_type])
    is_required = followed.get("required") is True or kind == TEXT
    schema, notes = conversion.convert(media.get("schema", True))
    members = None if kind == TEXT else members_of(schema)
    if members is not None and not is_required and members.required and kind == JSON:
        members = None  # a form always is the same fields: one without its required ones is no request
    if kind == FORM and (members is None or media.get("encoding")):
        raise LeftOut("form whose fields can't be listed")
    return RequestBody(kind, media_type.partition(";")[0].strip(), schema, is_required, members, notes)


def _chosen(content: dict[str, Any]) -> tuple[str, str]:
    """The first media type that can be sent: JSON before a form before text. Raises LeftOut."""
    kinds = {media_type: _kind(media_type.partition(";")[0].strip().lower()) for media_type in content}
    for wanted in (JSON, FORM, TEXT):
        for media_type, kind in kinds.items():
            if kind == wanted:
                return media_type, kind
    first = next(iter(content))
    raise LeftOut("multipart body" if first.lower().startswith("multipart/") else f"body of {one_line(first, 60)}")


def _kind(media_type: str) -> str | None:
    if media_type in {"application/json", "*/*", "application/*"} or media_type.endswith("+json"):
        return JSON
    return {_FORM_TYPE: FORM, "text/plain": TEXT}.get(media_type)


def members_of(schema: Schema) -> Members | None:
    """The members of an object that is no more than its members, `allOf` taken together; None for anything else."""
    if isinstance(schema, bool):
        return None
    kind = schema.get("type", "object")
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
    known = _PLAIN | {"allOf"} if isinstance(schema.get("allOf"), list) else _PLAIN
    is_closed = schema.get("additionalProperties", False) is False
    if not is_object or not is_closed or not schema.keys() <= known | {"additionalProperties"}:
        return None
    properties: dict[str, Schema] = dict(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    for branch in schema.get("allOf", ()):
        members = members_of(branch)
        if members is None:
            return None
        for name, one in members.properties.items():
            properties[name] = {"allOf": [properties[name], one]} if name in properties else one
        required += members.required
    if not properties or not set(required) <= properties.keys():
        return None
    return Members(properties, tuple(dict.fromkeys(required)))
