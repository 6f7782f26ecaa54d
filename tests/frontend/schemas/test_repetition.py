"""Schemas whose parts lead to each other by many ways: a check ends in a moment, or is refused."""

from typing import Any

import pytest

from frontend.errors import GateError
from frontend.schemas.pointers import can_have
from frontend.schemas.repetition import deepest
from frontend.schemas.validator import SchemaRefused, Validator
from ipc.limits import MAX_DEPTH_JSON

OPERATION = {"type": "object", "required": ["op", "of"], "properties": {"of": {"items": {"$ref": "#"}}}}
UNION = {"oneOf": [{"type": "string"}, *({**OPERATION, "properties": {
    **OPERATION["properties"], "op": {"const": name}}} for name in ("and", "or", "not"))]}  # type: ignore[dict-item]  # fmt: skip
TWICE = {"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}


def chain(length: int, keyword: str, *references: str) -> dict[str, Any]:
    """Definitions of which each refers to the next by all of these references."""
    parts = {
        f"a{number}": {
            "$anchor": f"a{number}",
            keyword: [{"$ref": f"{reference}a{number + 1}"} for reference in references],
        }
        for number in range(length)
    }
    return {"$defs": {**parts, f"a{length}": {"$anchor": f"a{length}"}}, "$ref": "#/$defs/a0"}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("references", [("#/$defs/", "#/$defs/"), ("#", "#/$defs/")])
def test_definitions_that_refer_twice_to_each_other_are_refused(keyword: str, references: tuple[str, ...]) -> None:
    assert deepest(chain(10, keyword, *references)) == MAX_DEPTH_JSON
    with pytest.raises(SchemaRefused, match="would not end"):
        Validator(chain(40, keyword, *references))


def test_a_way_of_thousands_of_references_is_refused() -> None:
    with pytest.raises(SchemaRefused, match="too many steps"):
        Validator(chain(3000, "allOf", "#/$defs/"))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}}, chain(200, "allOf", "#/$defs/"),
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"properties": {f"p{number}": {"$ref": "#/$defs/a"} for number in range(500)}, "$defs": {"a": {}}},
    ],
)  # fmt: skip
def test_a_schema_that_leads_to_each_part_by_few_ways_bounds_no_value(schema: dict[str, Any]) -> None:
    assert deepest(schema) == MAX_DEPTH_JSON


@pytest.mark.parametrize(("schema", "member"), [(TWICE, "a"), (UNION, "of")])
def test_a_node_that_leads_back_to_itself_several_times_bounds_the_depth_of_values(
    schema: dict[str, Any], member: str
) -> None:
    most, validator = deepest(schema), Validator(schema)
    assert 10 < most < MAX_DEPTH_JSON
    value: Any = "x" if member == "of" else {}
    for _ in range(most - 1 if member == "a" else most // 2):
        value = {"op": "not", "of": [value]} if member == "of" else {"a": value}
    assert validator.accept(value) == value
    for _ in range(2):
        value = {"op": "not", "of": [value]} if member == "of" else {"a": value}
    with pytest.raises(GateError) as refused:
        validator.accept(value)
    assert refused.value.extra["reason"] == f"(body): at most {most} levels, for this schema"


def test_a_pointer_into_such_definitions_is_judged_at_once() -> None:
    assert can_have({"type": "object", **chain(31, "allOf", "#/$defs/", "#/$defs/")}, "/a/b")
