import copy
from typing import Any

import pytest

from frontend.errors import GateError
from frontend.schemas.validator import Validator

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "note": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "any": True,
        "by_reference": {"$ref": "#/$defs/text"},
        "nullable_reference": {"$ref": "#/$defs/maybe"},
        "inner": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["b"],
        },
        "items": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
    },
    "required": ["name"],
    "$defs": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "tree": {
            "type": "object",
            "properties": {"leaf": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        },
    },
}


@pytest.mark.parametrize(
    ("sent", "accepted"),
    [
        ({"name": "x", "note": None}, {"name": "x"}),
        ({"name": "x", "maybe": None, "any": None}, {"name": "x", "maybe": None, "any": None}),
        ({"name": "x", "by_reference": None, "nullable_reference": None}, {"name": "x", "nullable_reference": None}),
        ({"name": "x", "unknown": None}, {"name": "x", "unknown": None}),
        ({"name": "x", "inner": {"a": None, "b": 1}}, {"name": "x", "inner": {"b": 1}}),
        (
            {"name": "x", "items": [{"leaf": None, "below": [{"leaf": None}, {"leaf": "y"}]}]},
            {"name": "x", "items": [{"below": [{}, {"leaf": "y"}]}]},
        ),
    ],
)
def test_optional_nulls_are_dropped_where_the_schema_does_not_allow_null(sent: Any, accepted: Any) -> None:
    before = copy.deepcopy(sent)
    assert Validator(SCHEMA).accept(sent) == accepted
    assert sent == before, "what was sent is not changed"


@pytest.mark.parametrize("sent", [{"name": None}, {"name": "x", "inner": {"b": None}}, {"name": "x", "items": [None]}])
def test_a_required_null_is_a_violation(sent: Any) -> None:
    with pytest.raises(GateError):
        Validator(SCHEMA).accept(sent)


def test_a_value_without_nulls_is_taken_as_it_is() -> None:
    sent = {"name": "x", "note": "y", "inner": {"a": 1, "b": 2}, "items": [{"leaf": "z"}]}
    assert Validator(SCHEMA).accept(sent) is sent


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"a": {"$anchor": "x", "type": "string"}, "b": {"$ref": "#x"}}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"type": "object", "properties": {"b": {"$ref": "#"}}}}},
        {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"properties": {"c": {"type": "string"}}}}},
        {"prefixItems": [{"type": "null"}], "items": False},
    ],
)
def test_references_of_every_kind_end(schema: dict[str, Any]) -> None:
    validator = Validator(schema)
    assert validator.accept({}) == {}


def test_an_encoded_reference_is_followed() -> None:
    schema = {"$ref": "#/$defs/a%20b", "$defs": {"a b": {"properties": {"c": {"type": "string"}}}}}
    assert Validator(schema).accept({"c": None}) == {}
