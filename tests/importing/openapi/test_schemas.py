"""Schemas of OpenAPI as JSON Schema 2020-12."""

from pathlib import Path
from typing import Any

import pytest

from importing.openapi.references import References
from importing.openapi.schemas import SchemaConversion
from importing.refusal import LeftOut
from importing.steps import ImportSteps
from tests.support.openapi import json_body, one


def converted(raw: Any, *, version: str = "3.0", is_request: bool = True, **schemas: Any) -> tuple[Any, list[str]]:
    references = References({"components": {"schemas": schemas}}, ImportSteps("api.json"))
    return SchemaConversion(references, is_3_0=version == "3.0", is_request=is_request).convert(raw)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"nullable": True, "allOf": [{"type": "string"}]},
         {"anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "string", "example": "a", "xml": {}, "x-y": 1, "discriminator": {}}, {"type": "string"}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        ({"type": "integer", "format": "int64", "maximum": 2**63}, {"type": "integer"}),
        ({"type": "string", "required": True, "enum": []}, {"type": "string"}),
    ],
)  # fmt: skip
def test_the_words_of_3_0_become_those_of_json_schema(raw: dict[str, Any], expected: dict[str, Any]) -> None:
    assert converted(raw) == (expected, [])


def test_a_bound_in_no_form_of_json_schema_is_left_out_and_said() -> None:
    raw = {"type": "String", "minLength": "one", "enum": "a", "maximum": "9"}
    assert converted(raw) == ({}, [
        f"without the {said}, which JSON Schema does not have"
        for said in ("enum 'a'", "maximum '9'", "minLength 'one'", "type 'String'")
    ])  # fmt: skip


def test_in_3_1_null_bounds_and_what_stands_beside_a_reference_hold_as_they_are() -> None:
    raw = {"type": ["integer", "null"], "exclusiveMinimum": 1}
    assert converted(raw, version="3.1") == (raw, [])
    beside = {"$ref": "#/components/schemas/A", "maxLength": 3}
    a = {"type": "string"}
    assert converted(beside, version="3.1", A=a) == ({"allOf": [a, {"maxLength": 3}]}, [])
    assert converted(beside, version="3.0", A=a) == (a, [])


def test_members_for_answers_alone_are_not_asked_for_and_the_other_way_round() -> None:
    raw = {
        "type": "object", "required": ["id", "password", "name"],
        "properties": {
            "id": {"type": "string", "readOnly": True}, "made": {"$ref": "#/components/schemas/Made"},
            "password": {"type": "string", "writeOnly": True}, "name": {"type": "string"},
        },
    }  # fmt: skip
    made = {"type": "string", "readOnly": True}
    request, _ = converted(raw, Made=made)
    assert (sorted(request["properties"]), request["required"]) == (["name", "password"], ["password", "name"])
    answer, _ = converted(raw, is_request=False, Made=made)
    assert (sorted(answer["properties"]), answer["required"]) == (["id", "made", "name"], ["id", "name"])


def test_a_cycle_is_cut_and_said() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/N"}}}
    schema, notes = converted({"$ref": "#/components/schemas/N"}, N=node)
    assert schema["properties"]["next"] == {"type": "object"}
    assert notes == ["cut where N refers to itself: anything is accepted there"]


def test_a_schema_that_is_too_large_is_cut_where_it_is_deep_and_said() -> None:
    wide: dict[str, Any] = {"type": "string"}
    for _ in range(4):
        wide = {"type": "object", "properties": {f"p{number}": wide for number in range(8)}}
    schema, notes = converted(wide)
    assert notes == ["cut below 3 levels: anything is accepted there"]
    assert schema["properties"]["p0"]["properties"]["p0"]["properties"]["p0"] == {"type": "object"}


def test_a_pattern_that_the_gateway_does_not_run_is_left_out_and_said(tmp_path: Path) -> None:
    members = {"a": {"type": "string", "pattern": "^(?=x)y$"}, "b": {"type": "string", "pattern": "^[a-z]+$"}}
    made = one(tmp_path, {"requestBody": json_body({"type": "object", "properties": members})})
    assert made["io"]["request_schema"]["properties"] == {"a": {"type": "string"}, "b": members["b"]}
    text = (tmp_path / "actions" / "one.yaml").read_text()
    assert "# Review: without the pattern '^(?=x)y$', which the gateway does not run." in text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ({"$ref": "file:///etc/passwd"}, "outside the document"),
        ({"$ref": "http://127.0.0.1/x.json"}, "outside the document"),
        ({"$ref": "other.yaml#/A"}, "outside the document"),
        ({"$ref": "#/components/schemas/Missing"}, "is not there"),
        ({"$ref": "#/components/schemas/A/type/0"}, "a schema is no mapping"),
        ({"$ref": "#anchor"}, "is not there"),
        ({"$id": "https://x.example/", "type": "string"}, "moves the base"),
        ({"items": {"$dynamicRef": "#x"}, "type": "array"}, "moves the base"),
        (["string"], "a schema is no mapping"),
        ({"properties": {"a": 1}}, "a schema is no mapping"),
    ],
)
def test_a_reference_leads_nowhere_but_into_the_document(raw: Any, reason: str) -> None:
    with pytest.raises(LeftOut, match=reason):
        converted(raw, version="3.1", A={"type": "string"})


def test_references_that_only_lead_to_each_other_end() -> None:
    a, b = {"$ref": "#/components/schemas/B"}, {"$ref": "#/components/schemas/A"}
    schema, notes = converted(a, A=a, B=b)
    assert schema == {}
    assert notes
