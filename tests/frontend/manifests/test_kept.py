"""Sections `evidence` and `summary` of a manifest."""

from typing import Any

import pytest

from ipc.evidence.kept_values import KeptRules
from tests.frontend.actions.conftest import Read, assert_refused

SCHEMA = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "path": {"type": "string"}, "message": {"type": "string"}, "count": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "string"}},
        "referred": {"$ref": "#/$defs/person"}, "one_of": {"oneOf": [{"const": 1}, {"$ref": "#/$defs/person"}]},
        "inner": {"type": "object", "additionalProperties": False, "properties": {"a": {"type": ["string", "null"]}}},
    },
    "$defs": {"person": {"type": "object", "additionalProperties": False, "properties": {"name": {"type": "string"}}}},
}  # fmt: skip


def with_kept(more: dict[str, Any]) -> dict[str, Any]:
    return {"io": {"request_schema": SCHEMA}, **more}


def test_both_sections_are_read(read_kind: Read) -> None:
    more = {"evidence": {"keep": ["/count", "/inner/a"], "mask": ["/message"]}, "summary": "{count} of {inner/a}"}
    manifest, problems = read_kind("compute", with_kept(more))
    assert problems == []
    assert manifest is not None
    assert manifest.kept == KeptRules(("/count", "/inner/a"), ("/message",), "{count} of {inner/a}")


def test_a_value_of_a_list_and_one_behind_a_reference_can_be_kept(read_kind: Read) -> None:
    more = {"evidence": {"keep": ["/list/0", "/referred/name", "/one_of/name", "/one_of"]}}
    assert read_kind("compute", with_kept(more))[1] == []


def test_an_action_without_them_keeps_nothing(read_kind: Read) -> None:
    manifest, _ = read_kind("compute", with_kept({}))
    assert manifest is not None
    assert manifest.kept is None


@pytest.mark.parametrize(
    ("more", "field", "words"),
    [
        ({"evidence": {"keep": ["/none"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"keep": ["/list"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"mask": ["/inner"]}}, "evidence.mask[0]", "no request can have"),
        ({"evidence": {"keep": ["/count/a"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"keep": ["/referred"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"keep": ["/referred/age"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"mask": ["/one_of/age"]}}, "evidence.mask[0]", "no request can have"),
        ({"evidence": {"keep": ["/list/x"]}}, "evidence.keep[0]", "no request can have"),
        ({"evidence": {"keep": ["/count"], "mask": ["/count"]}}, "evidence.mask[0]", "named twice"),
        ({"evidence": {"keep": ["count"]}}, "evidence.keep[0]", "JSON pointer"),
        ({"evidence": {"keep": [f"/{n}" for n in range(33)]}}, "evidence.keep", "more than 32"),
        ({"evidence": {"kept": []}}, "evidence.kept", "Did you mean keep?"),
        ({"summary": "{count}"}, "summary", "is not kept"),
        ({"evidence": {"mask": ["/count"]}, "summary": "{count}"}, "summary", "is not kept"),
        ({"summary": "a { b"}, "summary", "brace"),
        ({"summary": "x" * 257}, "summary", "at most 256"),
    ],
)  # fmt: skip
def test_a_section_that_could_not_be_followed_is_a_problem(
    read_kind: Read, more: dict[str, Any], field: str, words: str
) -> None:
    assert_refused(read_kind("compute", with_kept(more)), field, words)
