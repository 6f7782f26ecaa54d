"""Standing approvals as operators sign them: read and judged, for any input."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.keys.signed_approvals import SignatureRefused
from ipc.keys.standing_approvals import StandingCondition, StandingTerms, TermsRefused, read_standing, told
from tests.ipc.keys.test_signed_approvals import JSON
from tests.support.proofs import Key, b64
from tests.support.standing_approvals import signed_standing, standing_terms

KEY, NOW = Key(), 1_790_000_000
NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(-1e15, 1e15, allow_nan=False)
SCALARS = NUMBERS | st.booleans() | st.text(max_size=5)


def condition(op: str, value: Any) -> StandingCondition:
    return msgspec.convert({"pointer": "/a", "op": op, "value": value}, StandingCondition)


def test_a_good_one_says_who_signed_what() -> None:
    where = [{"pointer": "/a", "op": "<=", "value": 5}]
    signed = read_standing(signed_standing(KEY, now=NOW, max_calls=3, where=where))
    assert (signed.text.jkt, signed.terms.operator, signed.terms.max_calls) == (KEY.jkt, "ann", 3)
    members = {"principal": "uid:1000", "until": NOW + 3600, "max_calls": 3, "where": tuple(where)}
    assert told(signed.terms) == members


@given(st.sampled_from(sorted(StandingTerms.__struct_fields__)), JSON)
def test_a_claim_of_any_value_is_read_or_refused(name: str, value: Any) -> None:
    header, _, end = signed_standing(KEY, now=NOW).split(".")
    claims = standing_terms(now=NOW) | {name: value}
    text = f"{header}.{b64(json.dumps(claims).encode('utf-8', 'surrogatepass'))}.{end}"
    try:
        terms = read_standing(text).terms
    except SignatureRefused:
        return
    assert isinstance(terms, StandingTerms)


@given(NUMBERS, NUMBERS)
def test_numbers_are_compared_exactly(limit: float, value: float) -> None:
    assert condition("<=", limit).is_kept({"/a": value}) == (value <= limit)
    assert condition(">=", limit).is_kept({"/a": value}) == (value >= limit)
    assert condition("==", limit).is_kept({"/a": value}) == (value == limit)


@given(st.sampled_from(["<=", ">="]), NUMBERS, st.none() | st.booleans() | st.text(max_size=5) | st.lists(NUMBERS))
def test_what_is_no_number_is_never_within_a_bound(op: str, limit: float, value: Any) -> None:
    assert not condition(op, limit).is_kept({"/a": value})


@pytest.mark.parametrize(("op", "value", "kept", "broken"), [
    ("==", 1e2, 100, "100"), ("==", True, True, 1), ("in", ["EUR", 5], 5, "USD"), ("in", ["EUR"], "EUR", ["EUR"]),
])  # fmt: skip
def test_a_value_is_equal_to_those_of_its_kind_alone(op: str, value: Any, kept: Any, broken: Any) -> None:
    assert [condition(op, value).is_kept({"/a": one}) for one in (kept, broken, None)] == [True, False, False]
    assert not condition(op, value).is_kept({})


@given(st.lists(SCALARS, min_size=1, max_size=4), SCALARS)
def test_a_value_is_in_a_list_if_it_equals_one_item(items: list[Any], value: Any) -> None:
    among = any(condition("==", one).is_kept({"/a": value}) for one in items)
    assert condition("in", items).is_kept({"/a": value}) == among
    assert condition("in", [*items[:31], value]).is_kept({"/a": value})


@pytest.mark.parametrize(("op", "value"), [
    ("<=", "5"), (">=", True), ("in", 5), ("in", []), ("in", list(range(33))), ("==", [5]), ("==", None), ("<", 5),
    ("==", "x" * 1025), ("<=", 2**53), ("in", [[1]]),
])  # fmt: skip
def test_a_condition_that_no_value_could_keep_is_refused(op: str, value: Any) -> None:
    where = [{"pointer": "/a", "op": op, "value": value}]
    with pytest.raises(TermsRefused):
        read_standing(signed_standing(KEY, now=NOW, where=where))
