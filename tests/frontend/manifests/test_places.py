"""Each refusal of a manifest with its exact place: line, pointer into the schema, character of a pattern."""

import re
from pathlib import Path

import pytest

from tests.frontend.actions.conftest import Read

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "manifests.md").read_text()
HEAD = """action_id: a
version: 1.0.0
provider_module_digest: builtin:echo
io:
  request_schema:
    type: object
    properties:
      name:
        type: string
"""
"""Nine lines; what a test adds stands on line 10."""


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        (
            "        minLength: one",
            (
                '10  io.request_schema#/properties/name/minLength: "one" is not valid (type). '
                "See JSON Schema 2020-12 on minLength."
            ),
        ),
        (
            "        format: int32",
            (
                '10  io.request_schema#/properties/name/format: "int32" is no format of JSON Schema 2020-12. '
                "Correct it, or use a pattern."
            ),
        ),
        (
            "        $ref: '#/$defs/other'",
            (
                '10  io.request_schema#/properties/name/$ref: refers to "#/$defs/other", which is not there. '
                "Correct it, or add what it names."
            ),
        ),
        (
            "        $ref: https://example.com/schema.json",
            (
                "10  io.request_schema#/properties/name/$ref: refers to something outside this schema. "
                "Copy it into $defs and refer to #/$defs/NAME."
            ),
        ),
        (
            "    patternProperties:\n      'x-(a|a)*': {}",
            (
                '11  io.request_schema#/patternProperties/x-(a|a)*: the pattern "x-(a|a)*" can be matched in '
                "exponentially many ways, at character 4. "
                "Let each text be matched in one way only: ^[a-z]+(-[a-z]+)*$ instead of ^([a-z]+-?)+$."
            ),
        ),
        (
            "    $defs:\n      a/b:\n        anyOf:\n        - {}\n        - propertyNames: {pattern: '('}",
            (
                '14  io.request_schema#/$defs/a~1b/anyOf/1/propertyNames/pattern: the pattern "(" has a `(` '
                r"that is not closed, at character 1. Write \(, or close it."
            ),
        ),
        (
            "  response_schema: {items: {pattern: 'a++'}}",
            (
                '10  io.response_schema#/items/pattern: the pattern "a++" repeats a repetition, which engines '
                "read differently, at character 2. Put it into a group."
            ),
        ),
        (
            "verifier_kind: response_schema\nverification_config:\n  schema:\n    pattern: '[]'",
            (
                '13  verification_config.schema#/pattern: the pattern "[]" has an empty `[ ]`, at character 1. '
                "Name its characters."
            ),
        ),
        ("resource_limits:\n  feul: 3", '11  unknown field "feul" in resource_limits. Did you mean fuel?'),
        ("version: 2.0.0", '10  "version" stands here twice. Keep one; the first is on line 2.'),
    ],
)
def test_a_refusal_has_its_exact_place(read_text: Read, added: str, problem: str) -> None:
    manifest, problems = read_text(HEAD + added + "\n")
    assert manifest is None
    assert [str(one) for one in problems] == [f"action.yaml:{problem}"]


def test_a_pattern_in_a_value_is_no_pattern(read_text: Read) -> None:
    manifest, problems = read_text(HEAD + "        const: {pattern: '(?=a)'}\n        enum: [{pattern: '(a+)+'}]\n")
    assert manifest is not None, problems


def test_a_property_that_is_called_pattern_is_no_pattern(read_text: Read) -> None:
    manifest, problems = read_text(HEAD + "      pattern: {type: string}\n      format: {enum: ['(?=a)']}\n")
    assert manifest is not None, problems


def test_the_transcript_of_the_document_shows_sentences_that_are_said(read_text: Read) -> None:
    shown = re.findall(r"^/etc/gateway/actions/schema\.yaml:\d+  (.*)$", DOCUMENT, re.MULTILINE)
    assert len(shown) >= 3
    lines = [
        "        pattern: '^(?=a)b'", "        pattern: '^([a-z]+-?)+$'", "        format: int32",
        "        $ref: '#/$defs/other'",
    ]  # fmt: skip
    said = {str(read_text(HEAD + line + "\n")[1][0]).partition("  ")[2] for line in lines}
    assert set(shown) <= said
