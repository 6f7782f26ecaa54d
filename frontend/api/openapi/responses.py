"""The responses of each operation: its own answers, and every error code of its rows, with examples and headers."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from frontend.api.openapi.examples import example_of
from frontend.api.openapi.schemas import PREFIX, schema_of, structs_in
from frontend.api.openapi.texts import EXTRAS
from frontend.api.route import Route
from frontend.contract.annotations import Media
from frontend.errors import RETRY_AFTER, STATUS
from frontend.http.answers import TRACE_HEADER

ERRORS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "errors.md"
_ROW = re.compile(r"^\| \d{3} \| ([^|]+) \| ([^|]+) \|", re.MULTILINE)


def answers_of(rows: Sequence[Route], components: dict[str, Any]) -> dict[str, Any]:
    """The successful answers of the operation of these rows, by status."""
    answers: dict[str, Any] = {}
    for status, kinds in rows[0].operation.answers.items():
        media = media_of(kinds[0])
        if media is not None:
            response: dict[str, Any] = {
                "description": media.description,
                "content": {media.content_type: {"schema": media.schema}},
            }
        else:
            schemas = [schema_of(kind) for kind in kinds]
            schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            names = [kind.__name__ for kind in structs_in(kinds[:1])]
            response = {
                "description": components[names[0]]["description"] if names else HTTPStatus(status).phrase,
                "content": {"application/json": {"schema": schema, "example": example_of(schema, components)}},
            }
        answers[str(status)] = response | _headers(())
    return answers


def errors_of(rows: Sequence[Route]) -> dict[str, Any]:
    """Every error that it may answer, by status."""
    by_status: dict[int, list[str]] = {}
    for code in sorted({code for row in rows for code in row.codes}):
        by_status.setdefault(STATUS[code], []).append(code)
    errors: dict[str, Any] = {}
    for status, codes in by_status.items():
        answers = rows[0].operation.answers.get(status)
        if answers is None and len(codes) == 1:
            errors[str(status)] = {"$ref": f"#/components/responses/{codes[0]}"}
            continue
        response = _error_response(codes) | _headers(codes)
        if answers is not None:
            content = response["content"]["application/json"]
            content["schema"] = {"anyOf": [*(schema_of(kind) for kind in answers), content["schema"]]}
        errors[str(status)] = response
    return errors


def _error_response(codes: list[str]) -> dict[str, Any]:
    return {
        "description": ", ".join(f"`{code}`" for code in codes),
        "content": {
            "application/json": {
                "schema": {"allOf": [{"$ref": f"{PREFIX}Error"}, {"properties": {"error": {"enum": codes}}}]},
                "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
            }
        },
    }


def shared_responses(routes: Sequence[Route]) -> dict[str, Any]:
    """One response for each code that is the only one of its status somewhere."""
    codes = sorted({code for route in routes for code in route.codes})
    return {code: _error_response([code]) | _headers([code]) for code in codes}


def error_examples(routes: Sequence[Route]) -> dict[str, Any]:
    """One example a code, with what it means."""
    meanings = meanings_of_codes()
    return {
        code: ({"summary": meanings[code]} if code in meanings else {})
        | {"value": {"error": code} | EXTRAS.get(code, {})}
        for code in sorted({code for route in routes for code in route.codes})
    }


def _headers(codes: Sequence[str]) -> dict[str, Any]:
    names = [TRACE_HEADER]
    if any(STATUS[code] == 401 for code in codes):
        names.append("WWW-Authenticate")
    if any(code in RETRY_AFTER or STATUS[code] == 429 for code in codes):
        names.append("Retry-After")
    if "already_executed" in codes:
        names += ["Idempotent-Replayed", "X-Receipt-Id", "X-Intent-Id"]
    return {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names}}


def meanings_of_codes() -> dict[str, str]:
    """The meaning of each code, from docs/errors.md; empty where the documents are not installed."""
    if not ERRORS_PAGE.is_file():
        return {}
    return {
        code: meaning.strip()
        for names, meaning in _ROW.findall(ERRORS_PAGE.read_text())
        for code in re.findall(r"`(\w+)`", names)
    }


def media_of(kind: Any) -> Media | None:
    """The note on an answer that its handler writes itself."""
    if get_origin(kind) is not Annotated:
        return None
    return next((note for note in get_args(kind)[1:] if isinstance(note, Media)), None)
