"""docs/openapi.json: OpenAPI 3.1, made from the table of endpoints, the signatures of its handlers and the error table.

The same input gives the same bytes. Rows that share method and path, for agents and for operators, are one operation
with two ways to authenticate.
"""

import inspect
import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from frontend.api.openapi.examples import example_of
from frontend.api.openapi.responses import answers_of, error_examples, errors_of, media_of, shared_responses
from frontend.api.openapi.schemas import components_of, schema_of, structs_in
from frontend.api.openapi.texts import (
    ERROR,
    GATECTL,
    HEADER_PARAMETERS,
    HEADERS,
    INFO,
    RATES,
    SCHEMES,
    SECURITY,
    SERVERS,
    TAGS,
)
from frontend.api.route import Route
from frontend.contract.identifiers import IDENTIFIERS
from ipc.configuration.roles import OPERATOR_ROLES
from ipc.settings import Settings

LINE = 120
"""Characters of a line of the document, where its texts let it."""

Document = dict[str, Any]


def document(routes: Sequence[Route]) -> Document:
    """The whole document."""
    operations: dict[tuple[str, str], list[Route]] = {}
    for route in routes:
        operations.setdefault((route.path, route.method), []).append(route)
    components = {"Error": ERROR} | components_of(*_types(routes))
    paths: dict[str, dict[str, Any]] = {}
    for (path, method), rows in operations.items():
        paths.setdefault(path, {})[method.lower()] = _operation(rows, components)
    tags = dict.fromkeys(tag_of(route) for route in routes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Action enforcement gateway",
            "version": next(field.default for field in msgspec.structs.fields(Settings) if field.name == "version"),
            "summary": "Leases, enforced calls, approvals, receipts and evidence.",
            "description": INFO,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [SERVERS["merged"]],
        "tags": [{"name": tag, "description": TAGS.get(tag, tag)} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "headers": HEADERS,
            "responses": shared_responses(routes),
            "examples": error_examples(routes),
            "securitySchemes": SCHEMES,
        },
    }


def encoded(described: Document) -> bytes:
    """The bytes of docs/openapi.json."""
    return (_laid_out(described) + "\n").encode()


def _laid_out(value: Any, margin: int = 0, used: int = 0) -> str:
    """JSON on one line where it fits behind what is `used` of the line, else with each member on its own."""
    flat: str = json.dumps(value, ensure_ascii=False)
    if used + len(flat) <= LINE or not isinstance(value, dict | list):
        return flat
    inner = " " * (margin + 2)
    if isinstance(value, list):
        parts = [_laid_out(item, margin + 2, margin + 3) for item in value]
        opening, closing = "[", "]"
    else:
        names = {name: f"{json.dumps(name)}: " for name in value}
        parts = [
            names[name] + _laid_out(item, margin + 2, margin + 3 + len(names[name])) for name, item in value.items()
        ]
        opening, closing = "{", "}"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * margin}{closing}"


def tag_of(route: Route) -> str:
    """The tag that the operations of one module of handlers share."""
    module = route.handler.__module__.rpartition(".")[2]
    return {"execute": "actions", "previews": "actions"}.get(module, module)


def _types(routes: Iterable[Route]) -> tuple[list[Any], list[Any]]:
    bodies = [route.operation.body for route in routes if route.operation.body is not None]
    return bodies, [
        kind
        for route in routes
        for kinds in route.operation.answers.values()
        for kind in kinds
        if media_of(kind) is None
    ]


def _operation(rows: list[Route], components: dict[str, Any]) -> dict[str, Any]:
    first = rows[0]
    summary, _, more = _docs(first).partition("\n\n")
    rate = " ".join(dict.fromkeys(RATES[row.rate.value] for row in rows if row.rate.value in RATES))
    operation: dict[str, Any] = {
        "tags": [tag_of(first)],
        "operationId": f"{first.handler.__module__.rpartition('.')[2]}_{first.handler.__name__}",
        "summary": summary.rstrip("."),
        "description": "\n\n".join(part for part in (more, _roles(rows), rate) if part),
        "servers": _servers(rows),
        "security": [way for row in rows for way in SECURITY[row.auth]],
    }
    if not operation["description"]:
        del operation["description"]
    headers = HEADER_PARAMETERS.get(operation["operationId"], [])
    parameters = [*_path_parameters(first), *_query_parameters(first), *headers]
    if parameters:
        operation["parameters"] = parameters
    if first.operation.body is not None:
        operation["requestBody"] = _request_body(first.operation.body, components)
    if operation["operationId"] in GATECTL:
        examples = {name: IDENTIFIERS[name].example for name in first.operation.segments}
        command = GATECTL[operation["operationId"]].format_map(examples)
        operation["x-codeSamples"] = [{"lang": "Shell", "label": "gatectl", "source": command}]
    operation["responses"] = dict(sorted((answers_of(rows, components) | errors_of(rows)).items()))
    return operation


def _roles(rows: list[Route]) -> str:
    roles = [role for role in OPERATOR_ROLES if any(role in row.roles for row in rows)]
    return f"Operators need the role {' or '.join(f'`{role}`' for role in roles)}." if roles else ""


def _docs(route: Route) -> str:
    paragraphs = (inspect.getdoc(route.handler) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _servers(rows: list[Route]) -> list[dict[str, str]]:
    sockets = dict.fromkeys(socket for row in rows for socket in row.sockets)
    return [SERVERS["merged"], *(SERVERS[socket] for socket in sockets)]


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"{IDENTIFIERS[name].description} What can't be one is 404 `{IDENTIFIERS[name].code}`.",
            "schema": {"type": "string", "pattern": f"^(?:{IDENTIFIERS[name].pattern})$"},
            "example": IDENTIFIERS[name].example,
        }
        for name in route.operation.segments
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    form = route.operation.query
    if form is None:
        return []
    schema = components_of([form], [])[form.__name__]
    return [
        {"name": name, "in": "query"}
        | ({"description": member.pop("description")} if "description" in member else {})
        | {"required": name in schema.get("required", ()), "schema": _without_null(member)}
        for name, member in schema["properties"].items()
    ]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is there or not; it is never null."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    plain = {name: value for name, value in schema.items() if name != "anyOf" and (name, value) != ("default", None)}
    if "enum" in plain:
        plain["enum"] = [value for value in plain["enum"] if value is not None]
    return plain | (kinds[0] if len(kinds) == 1 else {})


def _request_body(kind: Any, components: dict[str, Any]) -> dict[str, Any]:
    schema = schema_of(kind)
    if not schema:
        text = "What the action's request schema asks for; a missing body is `{}`."
        return {
            "description": text,
            "required": False,
            "content": {"application/json": {"schema": {"description": text}, "example": {"text": "hello"}}},
        }
    (struct, *_) = structs_in([kind])
    required = bool(components[struct.__name__].get("required"))
    content = {"schema": schema, "example": example_of(schema, components)}
    return {"required": required, "content": {"application/json": content}}
