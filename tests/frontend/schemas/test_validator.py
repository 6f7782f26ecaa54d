from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.schemas.validator import SchemaRefused, Validator

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 3},
        "count": {"type": "integer", "minimum": 1},
        "list": {"type": "array", "items": {"type": "object", "required": ["a/b"], "properties": {"a/b": {}}}},
    },
    "required": ["text"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {"type": "string"}},
}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "(body): must be an object"),
        ({}, "/text: is missing"),
        ({"text": 5}, "/text: must be a string"),
        ({"text": "canary"}, "/text: must have at most 3 characters"),
        ({"text": "a", "count": 0}, "/count: must be at least 1"),
        ({"text": "a", "txt": "canary"}, "/txt: unknown property"),
        ({"text": "a", "t\u202et": 1}, "/t\\u202et: unknown property"),
        ({"text": "a", "x-y": 1}, "/x-y: must be a string"),
        ({"text": "a", "list": [{"a/b": 1}, {}]}, "/list/1/a~1b: is missing"),
    ],
)
def test_a_violation_names_property_and_expectation_and_never_the_value(value: Any, reason: str) -> None:
    with pytest.raises(GateError) as refused:
        Validator(SCHEMA).validate(value)
    assert refused.value.extra["reason"] == reason
    assert refused.value.__context__ is None
    assert "canary" not in repr(refused.value.extra)


def test_a_name_of_the_caller_s_own_is_answered_and_stands_in_no_evidence() -> None:
    for value in ({"text": "a", "canary" * 1000: 1}, {"text": "a", "x-canary": 1}):
        with pytest.raises(GateError) as refused:
            Validator(SCHEMA).validate(value)
        assert "canary" in refused.value.extra["reason"]
        assert len(refused.value.extra["reason"]) < 300
        assert refused.value.cause is not None
        assert refused.value.cause.startswith("/*: ")


def test_a_small_value_is_told_every_violation_a_few_of_them_and_a_large_one_the_first() -> None:
    fields = {f"p{number}": {"type": "integer"} for number in range(20)}
    validator = Validator({"type": "object", "properties": fields, "required": ["z"], "additionalProperties": False})

    def told(value: Any) -> Any:
        with pytest.raises(GateError) as refused:
            validator.validate(value)
        assert "canary" not in repr(refused.value.body())
        return refused.value.extra.get("violations")

    assert sorted(told({"p1": "canary", "p2": "canary", "x": 1, "y": 2})) == [
        "/p1: must be an integer", "/p2: must be an integer", "/x: unknown property", "/y: unknown property",
        "/z: is missing",
    ]  # fmt: skip
    assert told({"p1": 1}) is None  # one violation is the reason already
    assert len(told(dict.fromkeys(fields, "canary"))) == 8
    assert told({"p1": ["canary"] * 100}) is None


def test_a_pattern_can_not_be_made_to_run_for_long() -> None:
    validator = Validator({"type": "string", "pattern": "^(a+)+$"})
    with pytest.raises(GateError):
        validator.validate("a" * 100_000 + "b")


@pytest.mark.parametrize("schema", [{"$ref": "https://example.com/x"}, {"pattern": "(?<=a)b"}, {"type": "nothing"}])
def test_a_schema_that_does_not_compile_says_so(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaRefused):
        Validator(schema)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.text(max_size=5) | st.integers(),
            "count": st.integers(-2, 2) | st.floats(0, 3),
            "list": st.lists(st.dictionaries(st.sampled_from(["a/b", "c"]), st.none(), max_size=2), max_size=2),
            "other": st.none(),
        },
    )
)
def test_the_compiled_validator_agrees_with_jsonschema(value: Any) -> None:
    try:
        Validator(SCHEMA).validate(value)
        is_valid = True
    except GateError:
        is_valid = False
    assert is_valid == jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
