"""Roots of request schemas that hosts refuse are folded into objects."""

import time
from typing import Any

import pytest
from gateway_client.tool_schemas import REFUSED, object_schema

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}


def test_a_schema_with_an_object_at_its_root_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [TEXT, NUMBER]}}, "if": {}, "required": ["a"]}
    assert object_schema(schema) == schema
    assert object_schema(None) == {"type": "object"}
    assert object_schema({"type": "array"}) is None


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_alternatives_at_the_root_become_properties_of_which_the_common_ones_are_required(keyword: str) -> None:
    branches = [
        {"properties": {"kind": {"const": "a"}, "a": TEXT}, "required": ["kind", "a"]},
        {"type": "object", "properties": {"kind": {"const": "b"}, "b": NUMBER}, "required": ["kind"]},
        {"type": "null"},
    ]
    folded = object_schema({keyword: branches, "title": "t"})
    assert folded is not None
    assert folded["properties"] == {"kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "a": TEXT, "b": NUMBER}
    assert (folded["type"], folded["title"], folded["required"]) == ("object", "t", ["kind"])
    assert f'Must also fit: {{"{keyword}"' in folded["description"]


def test_many_alternatives_of_one_property_stand_side_by_side_so_that_every_host_can_read_them() -> None:
    kinds = [{"const": f"kind {number}"} for number in range(400)]
    folded = object_schema({"oneOf": [{"properties": {"kind": kind}} for kind in (*kinds, kinds[3])]})
    assert folded is not None
    assert folded["properties"] == {"kind": {"anyOf": kinds}}


def test_all_branches_and_references_at_the_root_are_joined() -> None:
    schema = {
        "$ref": "#/$defs/base", "$defs": {"base": {"properties": {"a": TEXT}, "required": ["a"]}},
        "allOf": [{"properties": {"a": {"maxLength": 3}, "b": {"$ref": "#/$defs/base"}}, "required": ["b"]}],
        "properties": {"c": NUMBER}, "additionalProperties": False,
    }  # fmt: skip
    folded = object_schema(schema)
    assert folded is not None
    assert folded["properties"] == {
        "a": {"allOf": [{"maxLength": 3}, TEXT]}, "b": {"$ref": "#/$defs/base"}, "c": NUMBER,
    }  # fmt: skip
    assert folded["required"] == ["a", "b"]
    assert "additionalProperties" not in folded


def test_references_that_multiply_leave_an_object_that_quotes_nothing_and_take_no_time() -> None:
    level = {f"l{number}": {"allOf": [{"$ref": f"#/$defs/l{number + 1}"}] * 60} for number in range(4)}
    schema = {"$ref": "#/$defs/l0", "$defs": level | {"l4": {"properties": {"a": TEXT}}}, "description": "Pays."}
    started = time.process_time()
    folded = object_schema(schema)
    assert time.process_time() - started < 1
    assert folded == {"type": "object", "description": 'Pays. Must also fit: {"$ref": "#/$defs/l0"}'}


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#"}]}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"oneOf": [True, 5, {"properties": 7, "required": "x"}]}, {"not": {"required": ["a"]}}, {"enum": [{}]},
        {"allOf": [{"properties": {"a": TEXT}}], "properties": {"b": {"$ref": "#/allOf/0/properties/a"}}},
    ],
)  # fmt: skip
def test_no_root_is_left_that_hosts_refuse(schema: dict[str, Any]) -> None:
    folded = object_schema(schema)
    assert folded is not None
    assert folded["type"] == "object"
    assert not folded.keys() & set(REFUSED)
    assert "#/allOf" not in str({**folded, "description": ""})
