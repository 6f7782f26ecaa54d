"""From an operation to its manifest: the fields, in the order in which a person reads them, and notes for the review.

Guarantees that a text of the document changes no risk, import or domain, and that each manifest passes the checks of
frontend/manifests.
"""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from importing.accepted import check_manifest
from importing.manifest_text import manifest_text
from importing.openapi.access import NeededSecret, owner_of, secrets_of
from importing.openapi.answers import expected_of, response_headers_of, response_schema_of
from importing.openapi.document import ApiOperation
from importing.openapi.requests import request_of
from importing.openapi.servers import server_of
from importing.refusal import LeftOut
from importing.steps import WRITING
from importing.words import one_line

RISKS = {"GET": "low", "HEAD": "low", "POST": "medium", "PUT": "medium", "PATCH": "medium", "DELETE": "high"}
MAX_DESCRIPTION = 500
SECONDS = 30


class ImportTarget(msgspec.Struct, frozen=True):
    """Where the document came from, and what the person asked for."""

    source: str
    server: str | None
    prefix: str


class MadeManifest(msgspec.Struct, frozen=True):
    """A manifest's file before it is written. `sent` is `POST /invoices/{id}` with its query."""

    action_id: str
    operation: ApiOperation
    text: str
    risk: str
    sent: str
    host: str
    secrets: tuple[NeededSecret, ...]
    notes: tuple[str, ...]


def made(operation: ApiOperation, action_id: str, digest: str, target: ImportTarget) -> MadeManifest:
    """The manifest of one operation. Raises LeftOut."""
    risk = RISKS.get(operation.method)
    if risk is None:
        raise LeftOut(f"method {operation.method}")
    server = server_of(operation, target.server, target.source)
    notes: list[str] = []
    secrets = secrets_of(operation, server, owner_of(target.prefix, server), notes)
    request = request_of(operation, server, frozenset(one.place for one in secrets))
    notes += request.notes
    host = urlsplit(server).hostname or ""
    if secrets and not server.startswith("https:"):
        notes.append("the server speaks plain http, over which no secret is sent")
    io: dict[str, Any] = {"request_schema": request.schema}
    response_schema = response_schema_of(operation)
    if response_schema is not None:
        io["response_schema"] = response_schema
    # A request whose token is refused is sent once more, and counts twice.
    has_token = any("oauth2_client_credentials" in one.inject for one in secrets)
    limits = {"fuel": 300_000_000, "memory_mb": 64, "timeout_seconds": SECONDS, "max_io_calls": 2 if has_token else 1}
    fields: dict[str, Any] = {
        "action_id": action_id,
        "version": "1.0.0",
        "description": _description(operation),
        "provider_module_digest": "builtin:http",
        "required_imports": ["http"],
        "risk_level": risk,
        "declared_side_effects": ["http_read" if operation.method in {"GET", "HEAD"} else "http_write"],
        "resource_limits": limits,
        "io": io,
        "egress": {"profile": "direct_allowlist", "allowed_domains": [host]},
        "template": request.template,
    }
    if secrets:
        fields["secrets"] = [{"name": one.name, "inject": one.inject} for one in secrets]
    headers = response_headers_of(operation)
    if headers:
        fields["response"] = {"headers": headers}
    if request.idempotency_header is not None:
        fields["idempotency"] = {"header": request.idempotency_header}
    fields["verifier_kind"] = "http_status"
    fields["verification_config"] = {"expected": expected_of(operation)}
    fields["imported"] = {
        "from": "openapi", "api": operation.document.title, "operation": one_line(operation.key, 300), "digest": digest,
    }  # fmt: skip
    unique = tuple(dict.fromkeys([*notes, *(f"{one.name}: {one.note}" for one in secrets if one.note)]))
    operation.document.steps.count_values(fields, WRITING)
    text = manifest_text(fields, _comments(operation, unique))
    check_manifest(text, fields)
    sent = request.template["url_template"].removeprefix(server)
    return MadeManifest(action_id, operation, text, risk, sent, host, secrets, unique)


def _description(operation: ApiOperation) -> str:
    texts = (one_line(operation.raw.get(name), MAX_DESCRIPTION) for name in ("summary", "description"))
    return next(filter(None, texts), one_line(operation.key, MAX_DESCRIPTION))


def _comments(operation: ApiOperation, notes: tuple[str, ...]) -> dict[str, list[str]]:
    """Lines of comment before a field; those before `action_id` begin the file."""
    head = [one_line(operation.key, 100), f"Made from: {operation.document.title}. Review it before it is in force."]
    if operation.raw.get("deprecated") is True:
        head.append("The API calls this operation deprecated.")
    return {
        "action_id": head + [f"Review: {note}." for note in notes],
        "risk_level": ["By the method alone. Policy decides what follows: high and critical wait for a person."],
        "imported": ["For `gateway import openapi … --check`. Leave it as it is."],
    }
