"""OpenAPI documents of tests, and imports of them in this process."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from importing.openapi.main import OpenApiImport, run
from importing.refusal import ImportRefused

SERVER = "https://billing.corp.example/v2"


class Told(NamedTuple):
    """An import's output, exit code and refusal."""

    code: int
    out: str
    refusal: str


def document(paths: dict[str, Any], *, version: str = "3.1.0", **top: Any) -> dict[str, Any]:
    """A whole document with these paths."""
    return {
        "openapi": version, "info": {"title": "Billing", "version": "2"}, "servers": [{"url": SERVER}], "paths": paths,
    } | top  # fmt: skip


def operation(name: str = "one", **fields: Any) -> dict[str, Any]:
    """An operation that answers 200."""
    return {"operationId": name, "responses": {"200": {"description": "done"}}} | fields


def query(name: str, schema: Any = None, **fields: Any) -> dict[str, Any]:
    """An optional parameter of the query."""
    return {"name": name, "in": "query", "schema": {"type": "string"} if schema is None else schema} | fields


def json_body(schema: Any, media_type: str = "application/json", **fields: Any) -> dict[str, Any]:
    """A required body of this media type."""
    return {"required": True, "content": {media_type: {"schema": schema}}} | fields


def imported(folder: Path, given: dict[str, Any] | str, **options: Any) -> Told:
    """Import a document, or the text of one, into `folder`/actions."""
    source = folder / "api.json"
    source.write_text(given if isinstance(given, str) else json.dumps(given))
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            code, refusal = run(OpenApiImport(str(source), str(folder / "actions"), **options)), ""
        except ImportRefused as error:
            code, refusal = error.code, error.sentence
    return Told(code, out.getvalue(), refusal)


def manifest(folder: Path, action_id: str = "one") -> dict[str, Any]:
    """A manifest that was written."""
    read: dict[str, Any] = yaml.safe_load((folder / "actions" / f"{action_id}.yaml").read_text())
    return read


def one(folder: Path, fields: dict[str, Any], *, path: str = "/things", method: str = "post", **top: Any) -> Any:
    """The manifest of a document's only operation."""
    told = imported(folder, document({path: {method: operation(**fields)}}, **top))
    assert told.code == 0, (told.refusal, told.out)
    return manifest(folder)
