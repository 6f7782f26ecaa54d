"""The OpenAPI document as a judge: what a gateway answers must be what its document says that it may answer.

Every answer of a front or a gateway that a test starts goes through here, so that each test is one of the document too.
"""

import json
import re
from functools import cache
from typing import Any, NamedTuple

import jsonschema_rs

from frontend.api.openapi.document import document
from frontend.api.routes import ROUTES

OUTSIDE = frozenset({"not_found", "method_not_allowed", "foreign_host"})
"""Codes that belong to no operation: such a request reaches no operation."""


class _Judge(NamedTuple):
    pattern: re.Pattern[str]
    path: str
    operations: dict[str, Any]


@cache
def _document() -> dict[str, Any]:
    return document(ROUTES)


@cache
def _judges() -> tuple[_Judge, ...]:
    """Paths without open segments first: they win where both fit."""
    paths = sorted(_document()["paths"].items(), key=lambda item: "{" in item[0])
    return tuple(_Judge(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path, item) for path, item in paths)


def prepare() -> None:
    """Read the document now, and not with the first answer."""
    _judges()


@cache
def _validator(path: str, method: str, status: str) -> jsonschema_rs.Validator | None:
    """The judge of one status' body; None where the document has no such status."""
    responses = _document()["paths"][path][method]["responses"]
    response = responses.get(status)
    if response is None:
        return None
    if "$ref" in response:
        response = _document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    content = response["content"].get("application/json", {"schema": {}})
    return jsonschema_rs.Draft202012Validator(
        {**content["schema"], "components": _document()["components"]}, validate_formats=False
    )


def check_answer(method: str, path: str, status: int, content_type: str, body: bytes) -> None:
    """Fail unless the document has this status for this request, and a schema that the body fits."""
    wanted = "get" if method == "HEAD" else method.lower()
    for judge in _judges():
        if judge.pattern.fullmatch(path) and wanted in judge.operations:
            break
    else:
        return
    value = json.loads(body) if content_type == "application/json" and body else None
    code = value.get("error") if isinstance(value, dict) and status >= 400 else None
    if code in OUTSIDE:
        return
    validator = _validator(judge.path, wanted, str(status))
    told = f"{method} {judge.path} answered {status} {code or ''}"
    assert validator is not None, f"{told}, which its handler does not list (frontend/contract/annotations.py)"
    if value is None:
        return
    problems = [f"{problem.instance_path}: {problem.message}" for problem in validator.iter_errors(value)]
    assert not problems, f"{told}, which is not what its handler says: {problems}"
