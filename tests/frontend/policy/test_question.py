"""Only a whole decision document is a decision, and reasons are fit to be shown."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.policy.question import Decision, Question, parse_decision
from ipc.texts.foreign_texts import clean_reason
from tests.support.policy import question

WHOLE: dict[str, Any] = {
    "allow": True, "requires_approval": False, "deny_reason": "", "rule": "allow", "allowed_sinks": ["http_read"],
    "policy_version": "v1",
}  # fmt: skip


def refused(document: str) -> str:
    with pytest.raises(GateError) as refusal:
        parse_decision(document)
    assert refusal.value.code == "policy_engine_unavailable"
    return str(refusal.value.cause)


def test_a_whole_document_is_a_decision() -> None:
    assert parse_decision(json.dumps(WHOLE)) == Decision(True, False, "", "allow", ("http_read",), "v1")


@pytest.mark.parametrize("name", WHOLE)
def test_a_document_without_one_of_its_fields_is_none(name: str) -> None:
    refused(json.dumps({key: value for key, value in WHOLE.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("allow", 1), ("allow", 0), ("allow", "true"), ("allow", None), ("allow", []), ("allow", [True]),
        ("requires_approval", 0), ("requires_approval", "false"), ("requires_approval", None),
        ("deny_reason", None), ("deny_reason", 5), ("rule", None), ("rule", 1), ("rule", ""), ("rule", "x" * 129),
        ("rule", "a\nb"), ("allowed_sinks", None), ("allowed_sinks", "http_read"), ("allowed_sinks", [1]),
        ("allowed_sinks", {"http_read": True}), ("policy_version", 1), ("policy_version", ""), ("policy_version", None),
    ],
)  # fmt: skip
def test_a_field_of_another_type_makes_it_none(name: str, value: object) -> None:
    refused(json.dumps(WHOLE | {name: value}))


@pytest.mark.parametrize("document", ["", "null", "true", "[]", "{", json.dumps([WHOLE]), json.dumps(WHOLE) + "{}",
                                      "undefined", json.dumps(json.dumps(WHOLE)), "[" * 100_000])  # fmt: skip
def test_what_is_no_object_is_none(document: str) -> None:
    refused(document)


@pytest.mark.parametrize(
    "document",
    [
        '{"allow":false,' + json.dumps(WHOLE)[1:],
        json.dumps(WHOLE)[:-1] + ',"allow":true}',
        json.dumps(WHOLE)[:-1] + ', "requires_approval" : false}',
        json.dumps(WHOLE)[:-1] + ', "requires_approval"\n\t\r :false}',
        json.dumps(WHOLE)[:-1] + ', "\\u0061llow":false}',
        json.dumps(WHOLE)[:-1] + ',"detail":{"a":1,"a":2}}',
    ],
)
def test_a_name_that_comes_twice_makes_it_none(document: str) -> None:
    assert "twice" in refused(document)


@pytest.mark.parametrize("name", ["rule", "policy_version"])
def test_a_name_has_1_to_128_characters(name: str) -> None:
    for value in ("x", "x" * 128):
        assert getattr(parse_decision(json.dumps(WHOLE | {name: value})), name) == value
    for value in ("", "x" * 129, "a\tb"):
        assert "1 to 128" in refused(json.dumps(WHOLE | {name: value}))


def test_fields_that_the_policy_adds_are_ignored() -> None:
    more = json.dumps(WHOLE | {"detail": {"allow": False}, "x": [1, None, '":']})
    assert parse_decision(more) == parse_decision(json.dumps(WHOLE))


def test_quotes_and_colons_in_a_reason_are_no_second_field() -> None:
    reason = '"allow": true, "x":'
    denied = parse_decision(json.dumps(WHOLE | {"allow": False, "deny_reason": reason}))
    assert (denied.allow, denied.deny_reason) == (False, reason)


def test_a_denial_without_a_reason_names_its_rule() -> None:
    denied = parse_decision(json.dumps(WHOLE | {"allow": False, "rule": "acl", "deny_reason": "\x00 \u202e"}))
    assert denied.deny_reason == "denied by rule acl"


def test_an_allowed_call_carries_no_reason() -> None:
    assert parse_decision(json.dumps(WHOLE | {"deny_reason": "left over"})).deny_reason == ""


def test_a_reason_is_cut_and_cleaned() -> None:
    denied = parse_decision(
        json.dumps(WHOLE | {"allow": False, "deny_reason": "a\r\n\x1b[31mb\u202e\u2028" + "c" * 600})
    )
    assert denied.deny_reason == "a[31mb" + "c" * 494


@given(st.text())
def test_a_clean_reason_holds_no_control_characters_and_500_characters_at_most(reason: str) -> None:
    clean = clean_reason(reason)
    assert len(clean) <= 500
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or 0x202A <= ord(char) <= 0x202E for char in clean)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(changes=st.dictionaries(st.sampled_from([*WHOLE, "other"]), json_values, max_size=4))
def test_a_parsed_decision_says_exactly_what_the_document_says(changes: dict[str, Any]) -> None:
    document = WHOLE | changes
    try:
        decision = parse_decision(json.dumps(document))
    except GateError:
        return
    assert decision.allow is document["allow"]
    assert decision.requires_approval is document["requires_approval"]
    assert list(decision.allowed_sinks) == document["allowed_sinks"]


@given(st.one_of(st.text(), st.binary().map(lambda data: data.decode("latin-1"))))
def test_arbitrary_text_is_no_decision(document: str) -> None:
    refused(document)


def test_the_input_document_holds_every_field_of_the_question_even_when_it_is_null() -> None:
    document = question(owner=None, fs_path=None, calls_remaining=None).as_input()
    fields = set(Question.__struct_fields__) - {"calls_remaining"} | {"budgets_before"}
    assert set(document) == fields
    assert document["budgets_before"] == {"calls_remaining": None}
    assert json.loads(msgspec.json.encode(document))["scopes"] == ["tools:call"]
