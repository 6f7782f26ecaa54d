"""The request of an action and the HTTP request that is sent for it: `io.request_schema` and `template`.

Parameters and the members of an object body stand side by side. Where a name would stand twice, the body is the one
property `body`.
"""

from typing import Any

import msgspec

from importing.openapi.bodies import BODY, JSON, RequestBody, body_of
from importing.openapi.document import ApiOperation
from importing.openapi.parameters import IDEMPOTENCY, can_be_placed, parameters_of, url_of
from importing.openapi.schemas import Schema, SchemaConversion
from importing.refusal import LeftOut


class DescribedRequest(msgspec.Struct, frozen=True):
    """Two sections of a manifest, and the header that takes a key of idempotency."""

    schema: dict[str, Any]
    template: dict[str, Any]
    idempotency_header: str | None
    notes: list[str]


def request_of(operation: ApiOperation, server: str, filled: frozenset[tuple[str, str]]) -> DescribedRequest:
    """`filled` are the places of secrets, which no request names. Raises LeftOut."""
    document = operation.document
    conversion = SchemaConversion(document.references, is_3_0=document.is_3_0, is_request=True)
    notes: list[str] = []
    found = parameters_of(operation, conversion, notes, filled)
    keys = [one.name for one in found if one.place == "header" and one.name.lower() == IDEMPOTENCY]
    parameters = tuple(one for one in found if one.name not in keys)
    properties: dict[str, Schema] = {one.name: one.schema for one in parameters}
    required = [one.name for one in parameters if one.is_required]
    template: dict[str, Any] = {"method": operation.method, "url_template": url_of(operation, server, parameters)}
    headers = {one.name: f"{{{one.name}}}" for one in parameters if one.place == "header"}
    body = body_of(operation, conversion)
    if body is not None:
        notes += body.notes
        _add_body(body, properties, required, template, headers)
    if headers:
        template["headers"] = headers
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False}
    if required:
        schema["required"] = required
    schema["properties"] = properties
    return DescribedRequest(schema, _ordered(template), keys[0] if keys else None, notes)


def _add_body(
    body: RequestBody,
    properties: dict[str, Schema],
    required: list[str],
    template: dict[str, Any],
    headers: dict[str, str],
) -> None:
    members = body.members
    can_name = members is not None and all(map(can_be_placed, members.properties))
    if members is not None and can_name and not members.properties.keys() & properties.keys():
        properties |= members.properties
        required += members.required
        template[body.kind] = {name: f"{{{name}}}" for name in members.properties}
    elif body.kind != JSON and members is not None:
        raise LeftOut("form with a field of the name of a parameter, or of a name that can't be written")
    else:
        if BODY in properties:
            raise LeftOut("a body beside a parameter of the name `body`")
        properties[BODY] = body.schema
        required += [BODY] if body.is_required else []
        template[body.kind] = f"{{{BODY}}}"
    if body.kind == JSON and "*" not in body.media_type and body.media_type.lower() != "application/json":
        headers["Content-Type"] = body.media_type


def _ordered(template: dict[str, Any]) -> dict[str, Any]:
    order = ("method", "url_template", "headers")
    return {name: template[name] for name in order if name in template} | template
