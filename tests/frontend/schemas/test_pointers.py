"""Which pointers a schema can have: never a false alarm, and none for what it rules out."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import tests.support.properties  # noqa: F401  (the number of examples)
from frontend.errors import GateError
from frontend.schemas.pointers import can_have
from frontend.schemas.validator import Validator
from ipc.texts.pointers import NotScalar, values_at

CLOSED = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        {**CLOSED, "properties": {"b": {}}},
        {**CLOSED, "patternProperties": {"^b": {}}},
        {**CLOSED, "properties": {"a": False}},
        {"type": "array"},
        {"type": ["array", "null"]},
        {"maxProperties": 0},
        {"propertyNames": {"pattern": "^b"}},
        {"additionalProperties": False},
        {"unevaluatedProperties": False},
        {"const": {"b": 1}},
        {"enum": [{"b": 1}, {"a": {}}]},
        {"properties": {"a": {"type": "object"}}},
        {"properties": {"a": {"type": "array"}}},
        {"properties": {"a": {"$ref": "#/$defs/whole"}}, "$defs": {"whole": {"type": "object"}}},
        {"allOf": [{}, CLOSED]},
        {"anyOf": [CLOSED, {"type": "string"}]},
        {"oneOf": [CLOSED, False]},
        False,
    ],
)  # fmt: skip
def test_a_schema_cannot_have_a_pointer_that_it_rules_out(schema: Any) -> None:
    assert not can_have(schema, "/a")


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"b": {}}},
        {**CLOSED, "properties": {"a": {"type": ["object", "null"]}}},
        {**CLOSED, "patternProperties": {"^a$": {}}},
        {"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]},
        {"enum": [{"a": 1}, 2]},
        {"anyOf": [CLOSED, {}]},
        {"$ref": "#"},
        {"not": {}, "$ref": "#elsewhere"},
    ],
)  # fmt: skip
def test_a_schema_can_have_a_pointer_that_it_does_not_rule_out(schema: Any) -> None:
    assert can_have(schema, "/a")


def test_a_list_of_scalars_counts_where_lists_are_asked_for() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    assert can_have(schema, "/a", lists=True)
    assert can_have(schema, "/a/3")
    assert not can_have({"properties": {"a": {"type": "array", "items": {"type": "array"}}}}, "/a", lists=True)
    assert not can_have({"properties": {"a": {"maxItems": 3, "type": "array"}}}, "/a/3")
    assert not can_have({"properties": {"a": {"prefixItems": [{}], "items": False, "type": "array"}}}, "/a/1")


_names = st.sampled_from(["a", "b", "0"])
_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_names, inner, max_size=2),
    max_leaves=5,
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from(["object", "array", "string", "integer", "null"])
    members = st.dictionaries(_names, inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True), "properties": members,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
            "additionalProperties": inner, "unevaluatedProperties": inner, "items": inner, "prefixItems": several,
            "allOf": several, "anyOf": several, "oneOf": several, "not": inner, "if": inner, "then": inner,
            "const": _values, "enum": st.lists(_values, min_size=1, max_size=2, unique_by=repr),
            "maxItems": st.integers(0, 2), "maxProperties": st.integers(0, 2), "$ref": st.just("#/properties/a"),
        },
    )  # fmt: skip


@given(st.recursive(st.booleans(), _schemas, max_leaves=6), _values, st.lists(_names, min_size=1, max_size=3))
def test_no_accepted_request_has_what_its_schema_is_said_to_rule_out(
    schema: Any, request: Any, steps: list[str]
) -> None:
    pointer = "".join("/" + step for step in steps)
    if not isinstance(schema, dict) or can_have(schema, pointer, lists=True):
        return
    try:
        Validator(schema).validate(request)
        assert pointer not in values_at(request, [pointer])
    except (GateError, NotScalar, ValueError):
        return
