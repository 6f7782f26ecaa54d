"""Documents whose references multiply: the work of an import has a bound."""

import re
from pathlib import Path
from typing import Any

import pytest

from importing import steps
from tests.support.openapi import document, imported, json_body, operation, query


def referring(number: int) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/S{number}"}


DOUBLING = {f"S{n}": {"allOf": [referring(n + 1)] * 2} for n in range(60)}
CLIQUE = {
    f"S{n}": {"properties": {f"m{k}": {"$ref": f"#/components/schemas/S{k}"} for k in range(20)}} for n in range(20)
}
CHAIN = {f"S{n}": referring(n + 1) for n in range(8_000)}
LISTS = {"S0": {"type": "object", "properties": {"a": {"enum": list(range(8_000))}}}}
NAMES = {"S0": {"allOf": [{"required": ["a"] * 1000, "type": "object"}] * 1000}}
PATTERNS = {
    "S0": {"type": "object", "properties": {f"m{n}": {"type": "string", "pattern": f"^a{n}$"} for n in range(100)}}
}


@pytest.mark.parametrize("schemas", [DOUBLING, CLIQUE, CHAIN, LISTS, NAMES, PATTERNS])
@pytest.mark.parametrize("is_comparison", [False, True])
def test_a_document_whose_references_multiply_is_refused_at_the_place_where_it_became_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schemas: dict[str, Any], is_comparison: bool
) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 50_000)
    paths = {
        f"/p{number}": {"post": operation(f"one{number}", requestBody=json_body(referring(0)))} for number in range(100)
    }
    told = imported(tmp_path, document(paths, components={"schemas": schemas}), check=is_comparison)
    assert told.code == 78
    assert re.search(r"api\.json: reading took more than 50000 steps, and had come to POST /p[0-9]+\. ", told.refusal)
    assert not (tmp_path / "actions").exists()


def test_paths_whose_references_multiply_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 1000)
    items = {f"I{n}": {"$ref": f"#/components/pathItems/I{n + 1}"} for n in range(30)} | {"I30": {"post": operation()}}
    paths = {f"/p{number}": {"$ref": "#/components/pathItems/I0"} for number in range(100)}
    told = imported(tmp_path, document(paths, components={"pathItems": items}))
    assert "and had come to its paths" in told.refusal


def test_large_operations_are_far_from_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_STEPS", 20 * 2500)
    members = {f"m{n}": {"type": "string", "description": "what it is", "maxLength": 80} for n in range(60)}
    fields = {
        "parameters": [query(f"q{n}") for n in range(10)],
        "requestBody": json_body({"$ref": "#/components/schemas/S"}),
    }
    paths = {f"/p{number}": {"post": operation(f"one{number}", **fields)} for number in range(20)}
    schemas = {"S": {"type": "object", "properties": members}}
    assert imported(tmp_path, document(paths, components={"schemas": schemas})).code == 0
