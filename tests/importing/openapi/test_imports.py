"""Which operations are taken, and what differs from the manifests that are there."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.openapi import document, imported, json_body, manifest, operation, query

REFUND = {"type": "object", "properties": {"amount": {"$ref": "#/components/schemas/Amount"}}}
GIVEN = document(
    {
        "/invoices": {"get": operation("list", parameters=[query("status")])},
        "/refunds": {"post": operation("refund", requestBody=json_body({"$ref": "#/components/schemas/Refund"}))},
        "/gone": {"delete": operation("remove")},
        "/upload": {"post": operation("upload", requestBody=json_body({}, "multipart/form-data"))},
    },
    components={"schemas": {"Refund": REFUND, "Amount": {"type": "integer"}}},
)


def changed(*steps: str, value: Any) -> dict[str, Any]:
    """The document with one member replaced, or removed by None."""
    given = copy.deepcopy(GIVEN)
    place: Any = given
    for step in steps[:-1]:
        place = place.setdefault(step, {})
    place.pop(steps[-1], None)
    if value is not None:
        place[steps[-1]] = value
    return given


def test_the_documents_of_these_tests_are_openapi() -> None:
    OpenAPIV31SpecValidator(GIVEN).validate()


def test_an_import_compares_equal_whatever_a_reviewer_edits(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN, prefix="p")
    file = tmp_path / "actions" / "p_refund.yaml"
    file.write_text(file.read_text().replace("risk_level: medium", "risk_level: critical").replace("p_refund", "pay"))
    told = imported(tmp_path, GIVEN, check=True)
    assert (told.code, told.out) == (0, f"{tmp_path}/actions: no operation is new, gone or changed.\n")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (changed("paths", "/credits", value={"post": operation("credit")}), "new      POST /credits"),
        (changed("paths", "/gone", value=None), "gone     DELETE /gone (remove.yaml)"),
        (changed("components", "schemas", "Amount", value={"type": "number"}), "changed  POST /refunds (refund.yaml)"),
        (changed("paths", "/invoices", "parameters", value=[query("page")]), "changed  GET /invoices (list.yaml)"),
        (changed("paths", "/gone", "delete", "security", value=[{"k": []}]), "changed  DELETE /gone (remove.yaml)"),
        (changed("paths", "/gone", "servers", value=[{"url": "https://b.example.com"}]), "changed  DELETE /gone"),
        (changed("paths", "/gone", "delete", "responses", value={"204": {"description": ""}}), "changed  DELETE"),
    ],
)
def test_an_operation_that_is_new_gone_or_changed_is_named(tmp_path: Path, given: dict[str, Any], line: str) -> None:
    imported(tmp_path, GIVEN)
    told = imported(tmp_path, given, check=True)
    assert told.code == 1
    assert len(told.out.splitlines()) == 2
    assert told.out.splitlines()[1].strip().startswith(line)
    assert not (tmp_path / "actions" / "credit.yaml").exists()


@pytest.mark.parametrize(
    "given",
    [
        changed("paths", "/gone", "delete", "tags", value=["new"]),
        changed("paths", "/gone", "delete", "x-internal", value=True),
        changed("paths", "/gone", "delete", "callbacks", value={"done": {}}),
        changed("paths", "/gone", "delete", "responses", value={
            "200": {"description": "done"}, "404": {"description": "new"}}),
        changed("components", "schemas", "Unused", value={"type": "string"}),
        json.loads(json.dumps(GIVEN, sort_keys=True)),
        changed("paths", "/photos", value={"post": operation("p", requestBody=json_body({}, "multipart/form-data"))}),
    ],
    ids=["tags", "extension", "callback", "failure", "unused", "order", "an operation that is left out"],
)  # fmt: skip
def test_no_other_change_of_a_document_counts(tmp_path: Path, given: dict[str, Any]) -> None:
    imported(tmp_path, GIVEN)
    assert imported(tmp_path, given, check=True).code == 0


def test_another_api_in_the_same_folder_is_not_compared(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN)
    other = document({"/x": {"get": operation("x")}}, info={"title": "CRM", "version": "1"})
    imported(tmp_path, other, prefix="crm")
    assert imported(tmp_path, other, check=True).code == 0
    assert imported(tmp_path, GIVEN, check=True).code == 0


def test_operations_are_chosen_by_id_or_by_method_and_path(tmp_path: Path) -> None:
    assert imported(tmp_path, GIVEN, operations=("list", "POST /refunds")).code == 0
    assert sorted(path.stem for path in (tmp_path / "actions").iterdir()) == ["list", "refund"]
    told = imported(tmp_path, GIVEN, operations=("lost", "list"))
    assert (told.code, told.refusal) == (2, "the document has no operation 'lost'.")


def test_the_summary_names_what_is_left_out_and_the_next_steps(tmp_path: Path) -> None:
    given = changed("paths", "/gone", "delete", "callbacks", value={"done": {}})
    told = imported(tmp_path, given)
    out = tmp_path / "actions"
    assert told.out.splitlines()[0].endswith("api.json: 4 operations · OpenAPI 3.1 · billing.corp.example")
    assert told.out.splitlines()[1:] == [
        "  remove  DELETE /gone               high",
        "  list    GET    /invoices{?status}  low",
        "  refund  POST   /refunds            medium",
        "left out: upload (multipart body)",
        "left out: 1 callback, which the API calls itself",
        f"3 manifests in {out}/. Nothing is in force yet. Next:",
        "  read each file: what it sends, to whom, and its risk",
        "  add `secrets` to each file if the API asks for a key: the document names none",
        "  gateway check --config gateway.toml --connect",
        "  gatectl policy grant PRINCIPAL remove list refund",
    ]


def test_paths_that_can_not_be_read_are_named_with_their_reasons(tmp_path: Path) -> None:
    paths = {"/a": {"$ref": "./paths.yaml#/a"}, "/b": {"$ref": "#/paths/~1b"}, "/c": 5, "x-owner": 5}
    told = imported(tmp_path, document({**paths, "/d": {"get": operation("d")}, "e": {"get": operation("e")}}))
    assert [line for line in told.out.splitlines() if line.startswith("left out")] == [
        "left out: e (a path that does not begin with /, or has a query or a fragment)",
        "left out: /a (refers to './paths.yaml#/a', outside the document)",
        "left out: /b, /c (a reference leads to no mapping)",
    ]
    told = imported(tmp_path, document(paths))
    assert "no operations below `paths`: /a refers to './paths.yaml#/a', outside the document." in told.refusal


def test_a_digest_stands_in_the_manifest_with_its_operation(tmp_path: Path) -> None:
    imported(tmp_path, GIVEN)
    stated = manifest(tmp_path, "refund")["imported"]
    assert stated == {"from": "openapi", "api": "Billing", "operation": "POST /refunds", "digest": stated["digest"]}
