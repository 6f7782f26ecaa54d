import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


INTEGER = {"type": "integer"}
HAS_O = {"type": "object", "properties": {"o": INTEGER}}
KINDS = [
    {"properties": {"kind": {"const": kind}, "o": inner}, "required": ["kind"]}
    for kind, inner in (("a", INTEGER), ("b", {"type": ["string", "null"]}))
]


@pytest.mark.parametrize(
    ("schema", "sent", "accepted"),
    [
        ({"allOf": [HAS_O]}, {"o": None}, {}),
        ({"allOf": [{"allOf": [{}, HAS_O]}]}, {"o": None, "p": None}, {"p": None}),
        ({"$ref": "#/$defs/o", "properties": {"p": {}}, "$defs": {"o": HAS_O}}, {"o": None, "p": None}, {"p": None}),
        ({"patternProperties": {"^o": INTEGER}}, {"o1": None, "p": None}, {"p": None}),
        ({"properties": {"p": {}}, "additionalProperties": INTEGER}, {"o": None, "p": None}, {"p": None}),
        ({"additionalProperties": HAS_O}, {"a": {"o": None}}, {"a": {}}),
        ({"prefixItems": [HAS_O], "items": {"allOf": [HAS_O]}}, [{"o": None}, {"o": None}], [{}, {}]),
        ({"dependentSchemas": {"p": HAS_O}}, {"o": None, "p": 1}, {"p": 1}),
        ({"anyOf": [HAS_O, {"type": "string"}]}, {"o": None}, {}),
        ({"oneOf": KINDS}, {"kind": "a", "o": None}, {"kind": "a"}),
        ({"oneOf": KINDS}, {"kind": "b", "o": None}, {"kind": "b", "o": None}),
        ({"if": KINDS[0], "then": {}, "else": HAS_O}, {"o": None}, {}),
        ({"if": {"required": ["p"]}, "then": HAS_O, "else": {}}, {"o": None, "p": 1}, {"p": 1}),
        ({"if": {"required": ["p"]}, "then": HAS_O}, {"o": None}, {"o": None}),
        ({"allOf": [HAS_O, {"$ref": "#"}]}, {"o": None}, {}),
        ({"anyOf": [{"allOf": [HAS_O, {"$ref": "#"}]}, {"type": "null"}]}, {"o": None}, {}),
        ({"properties": {"a": {"$ref": "#/allOf/0/properties/b"}}, "allOf": [{"properties": {"b": HAS_O}}]},
         {"a": {"o": None}}, {"a": {}}),
    ],
    ids=str,
)  # fmt: skip
def test_a_null_is_dropped_wherever_the_schema_reaches_it(schema: dict[str, Any], sent: Any, accepted: Any) -> None:
    assert Validator(schema).accept(sent) == accepted


@pytest.mark.parametrize(
    ("schema", "sent", "reason"),
    [
        ({"allOf": [HAS_O, {"required": ["o"]}]}, {"o": None}, "/o: must be an integer"),
        ({"properties": {"p": {}}, "additionalProperties": False}, {"o": None}, "/o: unknown property"),
        ({"anyOf": [HAS_O, {"properties": {"p": INTEGER}}]}, {"o": None, "p": None}, "(body): "),
    ],
)
def test_a_null_stays_where_it_is_required_unknown_or_could_mean_two_things(
    schema: dict[str, Any], sent: Any, reason: str
) -> None:
    with pytest.raises(GateError) as refused:
        Validator(schema).accept(sent)
    assert str(refused.value.extra["reason"]).startswith(reason)


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of objects whose properties are o, p and q; `#/$defs/d` is one of them."""
    names = st.sampled_from("opq")
    leaves: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [INTEGER, {"type": "string"}, {"type": ["integer", "null"]}, {}, {"$ref": "#/$defs/d"}, {"enum": [1, None]}]
    )

    def wider(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        several = st.lists(inner, min_size=1, max_size=2)
        return st.fixed_dictionaries(
            {"type": st.sampled_from(["object", ["object", "array"]])},
            optional={
                "properties": st.dictionaries(names, inner, max_size=3), "required": st.lists(names, max_size=1),
                "patternProperties": st.dictionaries(st.sampled_from(["^o", "p$", "."]), inner, max_size=2),
                "additionalProperties": inner, "items": inner, "prefixItems": several, "allOf": several,
                "anyOf": several, "if": inner, "then": inner, "else": inner,
                "dependentSchemas": st.dictionaries(names, inner, max_size=1),
            },
        )  # fmt: skip

    made = st.recursive(leaves, wider, max_leaves=6)
    return st.builds(lambda schema, d: {**schema, "$defs": {"d": d}}, wider(made), st.one_of(st.just(HAS_O), leaves))


VALUES = st.recursive(
    st.sampled_from([None, 1, "x"]),
    lambda inner: st.one_of(st.dictionaries(st.sampled_from("opq"), inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=6,
)


def takes(schema: dict[str, Any], value: Any) -> Any:
    try:
        return Validator(schema).accept(value)
    except GateError:
        return None


@given(schemas(), st.dictionaries(st.sampled_from("opq"), VALUES, max_size=3))
def test_a_valid_body_stays_as_it_is_and_another_loses_nulls_alone(schema: dict[str, Any], body: Any) -> None:
    taken = takes(schema, body)
    if jsonschema_rs.Draft202012Validator(schema).is_valid(body):
        assert taken == body
    elif taken is not None:
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(taken)
        assert _without_nulls(taken) == _without_nulls(body)


WRAPPED: list[tuple[str, Any, Any]] = [
    ("same", lambda schema: {"allOf": [{}, schema]}, lambda body: body),
    ("same", lambda schema: {"anyOf": [{"type": "string"}, schema]}, lambda body: body),
    ("same", lambda schema: {"oneOf": [schema, {"type": "null"}]}, lambda body: body),
    ("same", lambda schema: {"if": {"type": "string"}, "else": schema}, lambda body: body),
    ("same", lambda schema: {"if": {"type": ["object", "array"]}, "then": schema}, lambda body: body),
    ("inside", lambda schema: {"properties": {"p": schema}}, lambda body: {"p": body}),
    ("inside", lambda schema: {"patternProperties": {"^p": schema}}, lambda body: {"p1": body}),
    ("inside", lambda schema: {"additionalProperties": schema}, lambda body: {"any": body}),
    ("inside", lambda schema: {"items": schema}, lambda body: [body, body]),
    ("inside", lambda schema: {"prefixItems": [{}, schema]}, lambda body: [1, body]),
    ("inside", lambda schema: {"dependentSchemas": {"p": {"properties": {"q": schema}}}},
     lambda body: {"p": None, "q": body}),
]  # fmt: skip
MEMBERS: list[tuple[dict[str, Any], str]] = [
    (HAS_O, "o"), ({"patternProperties": {"^o": INTEGER}}, "o2"), ({"additionalProperties": INTEGER}, "any"),
    ({"properties": {"o": {"anyOf": [INTEGER, {"type": "string"}]}}}, "o"), ({"properties": {"o": {"enum": [1]}}}, "o"),
    ({"properties": {"o": {"$ref": "#/$defs/o"}}}, "o"),
]  # fmt: skip


@given(st.sampled_from(MEMBERS), st.lists(st.sampled_from(WRAPPED), max_size=5), st.booleans())
def test_a_body_with_a_null_is_taken_if_and_only_if_it_is_without_the_member(
    member: tuple[dict[str, Any], str], wrappers: list[tuple[str, Any, Any]], is_right: bool
) -> None:
    schema, name = member
    schema = {"type": "object", **schema}
    sent: Any = {name: None if is_right else {}}
    without: Any = {}
    for _, wrap, around in wrappers:
        schema, sent, without = wrap(schema), around(sent), around(without)
    schema = {"allOf": [schema], "$defs": {"o": INTEGER}}
    assert takes(schema, sent) == (without if is_right else None)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value
