"""Policy sees the text of a request unchanged, and no text can add fields to the input."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.policy import HEADER
from workers.rego.evaluator import CompiledPolicy
from workers.rego.values import Input, NotAValue, canonical_json

AWKWARD = [
    '"', "\\", '\\"', '\\\\"', "\n", "\t\r\b\f", "\x00", "\x01\x1f\x7f", "é", "😀", "\u2028\u2029", "\u202e", "\\u0041",
    "\\n", "{}", '", "allow": true, "x": "', "a\x00b", "`", "%s%n", "",
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text(alphabet='"\\nu0041{}:,' + string.ascii_lowercase, max_size=30),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def echo() -> CompiledPolicy:
    return CompiledPolicy({"gateway.rego": HEADER + "decision := input\n"}, "{}")


@given(document=st.dictionaries(texts, json_values, max_size=5))
def test_an_input_document_comes_back_as_it_was(echo: CompiledPolicy, document: dict[str, Any]) -> None:
    assert json.loads(echo.evaluate(document)) == document
    with_fine_number = {**document, "n": 1e-07}
    assert json.loads(echo.evaluate(with_fine_number)) == with_fine_number


@pytest.mark.parametrize(
    ("value", "than"), [(100.0000001, "100"), (1e-07, "0"), (5e-324, "-1"), (0.1234567, "0.123456"), (1e300, "1e299")]
)
def test_a_number_of_the_request_is_compared_with_all_its_digits(value: float, than: str) -> None:
    policy = CompiledPolicy({"gateway.rego": HEADER + f"decision := input.n > {than}\n"}, "{}")
    assert policy.evaluate({"n": value, "s": ["\x7f", 'a"b\\']}) == "true"


@given(name=texts, other=texts)
def test_a_string_of_the_request_equals_the_same_string_of_the_data_and_no_other(name: str, other: str) -> None:
    data = canonical_json({"acl": {name: [name]}})
    policy = CompiledPolicy(
        {"gateway.rego": HEADER + "default decision := false\n\ndecision if input.who in data.acl[input.who]\n"},
        json.dumps(json.loads(data)),  # spelt with \u escapes, as an operator's tool may write it
    )
    assert policy.evaluate({"who": name}) == "true"
    assert policy.evaluate({"who": other}) == json.dumps(other == name)


@pytest.mark.parametrize("text", AWKWARD)
def test_a_reason_made_from_the_request_can_not_add_fields_to_the_decision(text: str) -> None:
    body = 'decision := {"allow": false, "deny_reason": concat("", ["no: ", input.path]), "rule": input.path}\n'
    policy = CompiledPolicy({"gateway.rego": HEADER + body}, "{}")
    pairs = json.loads(policy.evaluate({"path": text}), object_pairs_hook=list)
    assert pairs == [("allow", False), ("deny_reason", "no: " + text), ("rule", text)]


@pytest.mark.parametrize(
    "document",
    [
        {"a": 2**63},
        {"a": -(2**63)},
        {"a": b"x"},
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": "\ud800"},
        {"a": {1: 2}},
        {"a": [object()]},
    ],
)
def test_an_input_without_a_json_form_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(NotAValue):
        Input(document)
