"""Thresholds and caps: which rules there may be, and which outcome a threshold has for the values of a request."""

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

import tests.support.properties  # noqa: F401  (the number of examples)
from frontend.policy.data import PolicyData, parse_data
from frontend.policy.value_rules import Cap, Threshold, strictest
from frontend.schemas.parser import parse_body
from ipc.texts.canonical import canonical_bytes
from ipc.texts.pointers import values_at
from ipc.texts.scalars import exact

RANK = {None: 0, "hold": 1, "deny": 2}


def values_of(body: str) -> Any:
    """The values of a request with this body, as a call reads them."""
    return values_at(json.loads(canonical_bytes(parse_body(body.encode()))), ["/v"])


def outcome(body: str, **rule: Any) -> str | None:
    return Threshold("/v", **rule).outcome(values_of(body))


@pytest.mark.parametrize(
    "written", ["101", "101.0", "1.01e2", "1010e-1", "100.00000000000001", "1e300", "100.5", '"100"', '"1e2"', "null",
                "true", "[1]", "[]"]
)  # fmt: skip
def test_a_value_above_a_bound_or_no_number_is_held_however_it_is_written(written: str) -> None:
    assert outcome(f'{{"v": {written}}}', hold_above=100) == "hold"


@pytest.mark.parametrize("written", ["100", "1e2", "100.0", "1000E-1", "-0", "-0.0", "-1e300", "1e-300", "0e99"])
def test_a_value_at_or_below_a_bound_keeps_the_rule_however_it_is_written(written: str) -> None:
    assert outcome(f'{{"v": {written}}}', hold_above=100) is None
    assert outcome(f'{{"v": {written}}}', deny_above=100) is None


def test_a_missing_value_is_held_where_numbers_are_compared_and_in_no_list() -> None:
    assert outcome("{}", hold_above=1) == outcome("{}", deny_above=1) == outcome("{}", hold_unless_in=("a",)) == "hold"
    assert outcome("{}", deny_unless_in=("a",)) == "deny"
    assert outcome('{"v": 2}', deny_above=1) == "deny"


def test_values_are_among_others_of_their_own_json_type_alone() -> None:
    listed = ("EUR", 1, True)
    for written in ('"EUR"', "1", "1.0", "true", '["EUR", 1e0]'):
        assert outcome(f'{{"v": {written}}}', deny_unless_in=listed) is None
    for written in ('"eur"', '"1"', "false", "null", "0", '["EUR", "USD"]', "[]", "2"):
        assert outcome(f'{{"v": {written}}}', deny_unless_in=listed) == "deny"
    assert outcome('{"v": true}', deny_unless_in=(1,)) == outcome('{"v": 1}', deny_unless_in=(True,)) == "deny"


_numbers = st.one_of(
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(-(2.0**53) + 1, 2.0**53 - 1),
    st.decimals(-1000, 1000, places=3, allow_nan=False).map(float),
)


@st.composite
def _spellings(draw: st.DrawFn, number: float) -> str:
    """One of the ways in which JSON can write the number."""
    digits = Decimal(repr(number))
    sign, coefficient, exponent = digits.as_tuple()
    assert isinstance(exponent, int)
    shift = draw(st.integers(0, 3))
    whole = int("".join(map(str, coefficient))) * 10**shift
    plain = format(digits, "f")
    return draw(st.sampled_from([f"{'-' if sign else ''}{whole}.0e{exponent - shift}", plain, repr(number)]))


@given(st.data(), _numbers, _numbers)
def test_a_threshold_agrees_with_fractions_for_each_spelling_of_a_number(
    data: st.DataObject, number: float, most: float
) -> None:
    written = data.draw(_spellings(number))
    is_above = Fraction(repr(number)) > Fraction(repr(most))
    sent = written if "." in written or "e" in written else f"{written}.0"
    assert outcome(f'{{"v": {sent}}}', deny_above=most) == ("deny" if is_above else None)
    assert outcome(f'{{"v": {sent}}}', hold_above=most) == ("hold" if is_above else None)


_rules = st.one_of(
    st.fixed_dictionaries({"hold_above": _numbers}), st.fixed_dictionaries({"deny_above": _numbers}),
    st.fixed_dictionaries({"hold_unless_in": st.lists(st.sampled_from(["a", 1, True, 2.5]), min_size=1, max_size=3)}),
    st.fixed_dictionaries({"deny_unless_in": st.lists(st.sampled_from(["a", 1, True, 2.5]), min_size=1, max_size=3)}),
)  # fmt: skip
_scalars = st.one_of(st.sampled_from(["a", "b", 1, 1.0, True, False, 2.5, None]), _numbers)


@given(st.lists(_rules, max_size=5), st.dictionaries(st.just("/v"), _scalars | st.lists(_scalars, max_size=3)))
def test_the_strictest_of_several_thresholds_decides_whatever_their_order(
    rules: list[dict[str, Any]], values: dict[str, Any]
) -> None:
    thresholds = [msgspec.convert({"pointer": "/v", **rule}, Threshold) for rule in rules]
    found, reverse = strictest(thresholds, values), strictest(thresholds[::-1], values)
    wanted = max((one.outcome(values) for one in thresholds), key=RANK.__getitem__, default=None)
    assert (found and found[0]) == (reverse and reverse[0]) == wanted


@pytest.mark.parametrize(
    "rule",
    [
        {}, {"hold_above": 1, "deny_above": 2}, {"hold_above": True}, {"hold_above": "1"}, {"hold_unless_in": []},
        {"deny_unless_in": [None]}, {"hold_above": 2**53}, {"hold_above": 1e300}, {"hold_unless_in": ["x" * 1025]},
        {"hold_above": 1, "more": 1}, {"deny_unless_in": [1] * 33},
    ],
)  # fmt: skip
def test_a_threshold_that_says_nothing_clear_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"pointer": "/v", **rule}, Threshold)


@pytest.mark.parametrize(
    "cap",
    [
        {}, {"deny_above": -1}, {"deny_above": 1e-10}, {"hold_above": 1, "window_seconds": 0},
        {"hold_above": 1, "window_seconds": 2_678_401}, {"hold_above": 1, "per": "session"},
        {"hold_above": 1, "pointer": "v"}, {"hold_above": 1, "pointer": "/a\n"},
    ],
)  # fmt: skip
def test_a_cap_that_cannot_be_counted_is_refused(cap: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"pointer": "/v", "per": "principal", "window_seconds": 60, **cap}, Cap)


def test_thresholds_and_caps_stand_in_the_data_and_digits_that_would_be_rounded_are_told() -> None:
    data = {"policy_version": "1", "thresholds": {"pay": [{"pointer": "/v", "hold_above": 0.1}]},
            "caps": {"pay": [{"pointer": "/v", "per": "all", "window_seconds": 60, "deny_above": 5}]}}  # fmt: skip
    text = json.dumps(data, indent=1)
    parsed = parse_data(text)
    assert isinstance(parsed, PolicyData)
    assert parsed.thresholds["pay"] == (Threshold("/v", hold_above=0.1),)
    assert exact(0.1) == Decimal("0.1")
    assert parsed.caps["pay"] == (Cap("/v", "all", 60, deny_above=5),)
    for number in ("0.10000000000000000001", "1e-99999999999999999999"):
        assert "more digits" in str(parse_data(text.replace("0.1", number)))
    assert ":4: thresholds.pay" in str(parse_data(text.replace("hold_above", "hold_over")))


@pytest.mark.parametrize(("section", "twice", "other", "words"), [
    ("caps", {"pointer": "/v", "per": "all", "window_seconds": 60}, {"window_seconds": 61},
     "pointer, per and window_seconds"),
    ("thresholds", {"pointer": "/v"}, {"pointer": "/w"}, "pointer and rule"),
])  # fmt: skip
def test_two_rules_of_an_action_that_would_be_one_are_refused(
    section: str, twice: dict[str, Any], other: dict[str, Any], words: str
) -> None:
    for more, problems in ((other, None), ({}, [f":1: {section}.pay: has two with the same {words}"])):
        rules = [twice | {"deny_above": 1}, twice | {"deny_above": 2} | more]
        parsed = parse_data(json.dumps({"policy_version": "1", section: {"pay": rules, "other": rules[:1]}}))
        assert (parsed if isinstance(parsed, list) else None) == problems
