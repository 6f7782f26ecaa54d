"""Canonical bytes: those of RFC 8785, as the `rfc8785` package writes them."""

import copy
import enum
import hashlib
import json
import math
import re
from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ipc.texts.canonical import (
    MAX_SAFE_INTEGER,
    NotCanonical,
    canonical_bytes,
    durable_bytes,
    is_durable_number,
    is_plain,
    sha256_hex,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
EDGES = (5e-324, 2.0**-1022, 1e-7, 1e-6, 1e-5, 1.0, 2.0**53, 1e15, 1e16, 1e17, 1e20, 1e21, 1e22, 1.7976931348623157e308)
"""Where the form of a number changes, for us, msgspec or ECMAScript."""
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(1e-8, 1e-4),
    st.floats(1e14, 1e23),
    st.floats(-(2.0**-1022), 2.0**-1022),
    st.integers(-(10**23), 10**23).map(float),
    st.builds(
        lambda digits, exponent: float(f"{digits}e{exponent}"), st.integers(-99_999, 99_999), st.integers(-340, 300)
    ),
    st.sampled_from(EDGES).flatmap(lambda edge: st.sampled_from((edge, -edge))),
)
ODD_NAMES = st.text(st.sampled_from("a~\x7f\xe9\ud7ff\ue000\ufb33\uffff\U00010000\U0001f600\U0010ffff"), max_size=3)
"""Names in which UTF-16 and UTF-8 may order differently."""
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | ODD_NAMES, inner, max_size=4),
    max_leaves=20,
)
ASCII = st.text(st.characters(max_codepoint=127))
PLAIN_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ASCII, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN_VALUES)
def test_for_plain_values_the_quick_way_writes_the_same_bytes(value: Any) -> None:
    assert is_plain(value)
    assert canonical_bytes(value) == msgspec.json.encode(value, order="sorted") == rfc8785.dumps(value)


@given(VALUES)
def test_for_any_value_the_bytes_are_those_of_the_rfc_and_the_value_stays_as_it_was(value: Any) -> None:
    before = copy.deepcopy(value)
    assert canonical_bytes(value) == rfc8785.dumps(value)
    assert repr(value) == repr(before)


@given(VALUES)
def test_for_what_is_plain_msgspec_writes_the_same_bytes(value: Any) -> None:
    assert is_plain(value) is (msgspec.json.encode(value, order="sorted") == rfc8785.dumps(value))


@given(st.lists(FLOATS, min_size=20, max_size=20))
def test_floats_of_all_ranges_are_written_as_the_rfc_writes_them(values: list[float]) -> None:
    assert canonical_bytes(values) == rfc8785.dumps(values)
    assert [float(canonical_bytes(value)) for value in values] == values


def test_floats_beside_an_edge_are_written_as_the_rfc_writes_them() -> None:
    edges = [*EDGES, *(2.0**exponent for exponent in range(-1074, 1024, 7))]
    beside = [one for edge in edges for one in (edge, math.nextafter(edge, 0), math.nextafter(edge, math.inf))]
    values = [sign * value for value in beside if math.isfinite(value) for sign in (1, -1)]
    assert [canonical_bytes(value) for value in values] == [rfc8785.dumps(value) for value in values]


@given(st.dictionaries(ODD_NAMES, st.none() | st.dictionaries(ODD_NAMES, FLOATS, max_size=4), max_size=6))
def test_names_are_sorted_by_utf16_at_every_level(value: dict[str, Any]) -> None:
    assert canonical_bytes([value]) == rfc8785.dumps([value])


class Word(enum.StrEnum):
    ONE = "one"


class Number(enum.IntEnum):
    TWO = 2


class Pair(NamedTuple):
    left: float
    right: str


class Ratio(float):
    pass


@pytest.mark.parametrize(
    "value",
    [
        Word.ONE,
        Number.TWO,
        Pair(1.0, "x"),
        Ratio(1e22),
        {Word.ONE: [Number.TWO]},
        OrderedDict(b=Word.ONE, a=Ratio(0.5)),
    ],
)
def test_instances_of_subclasses_are_written_as_what_they_hold(value: Any) -> None:
    assert canonical_bytes({"a": value}) == rfc8785.dumps({"a": value})


@given(VALUES)
def test_durable_bytes_that_were_read_again_are_written_the_same(value: Any) -> None:
    try:
        written = durable_bytes(value)
    except NotCanonical:
        assert re.search(rb"\d{16}", canonical_bytes(value))
        return
    assert written == canonical_bytes(value)
    assert canonical_bytes(json.loads(written)) == canonical_bytes(msgspec.json.decode(written)) == written


@pytest.mark.parametrize("value", [2.0**53, -(2.0**53), 1e20, {"a": [1e16]}])
def test_a_float_that_would_be_read_as_too_large_an_integer_is_not_durable(value: Any) -> None:
    canonical_bytes(value)
    with pytest.raises(NotCanonical):
        durable_bytes(value)


@pytest.mark.parametrize("value", [2.0**53 - 1, 1e21, 1.5, {"é": -0.0}])
def test_other_floats_are_durable(value: Any) -> None:
    assert durable_bytes(value) == canonical_bytes(value)


@given(FLOATS | st.sampled_from((math.inf, -math.inf, math.nan)) | st.integers(-(2**60), 2**60))
def test_a_number_is_durable_if_durable_bytes_writes_it(value: float) -> None:
    try:
        durable_bytes(value)
    except NotCanonical:
        assert not is_durable_number(value)
    else:
        assert is_durable_number(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        # RFC 8785, appendix B, and section 3.2.3.
        (333333333.33333329, b"333333333.3333333"),
        (1e30, b"1e+30"),
        (4.50, b"4.5"),
        (2e-3, b"0.002"),
        (1e-27, b"1e-27"),
        (-0.0, b"0"),
        (5e-324, b"5e-324"),
        (1.7976931348623157e308, b"1.7976931348623157e+308"),
        (9007199254740992.0, b"9007199254740992"),
        (1e21, b"1e+21"),
        (999999999999999900000.0, b"999999999999999900000"),
        (1.0, b"1"),
        ('\u20ac$\x0f\nA\'B"\\\\"/\x7f\u2028', b'"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f\xe2\x80\xa8"'),
        (
            {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\x80": 6, "\xf6": 7},
            '{"\\r":2,"1":4,"\x80":6,"\xf6":7,"\u20ac":1,"\U0001f600":5,"\ufb33":3}'.encode(),
        ),
        ({"b": [(), {}, None], "a": True}, b'{"a":true,"b":[[],{},null]}'),
    ],
)
def test_known_values_have_their_known_canonical_form(value: Any, written: bytes) -> None:
    assert canonical_bytes(value) == written


def _deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"), float("inf"), MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1, 10**400, "\ud800", {"\ud800": 1},
        {"a": "\udfff"}, {1: 2}, {None: 1}, b"x", {1, 2}, object(), [[float("nan")]], float("-inf"), msgspec.Raw(b"1"),
        {"\ud800": 1, "\ue000": 2, "\U0001f600": 3}, {"a": 1, 2: 3}, Ratio("inf"),
    ],
)  # fmt: skip
def test_a_value_without_a_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_bytes(value)
    with pytest.raises(NotCanonical):
        canonical_bytes({"deep": [value]})


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(NotCanonical):
        canonical_bytes(_deep())


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_number(value: bool) -> None:
    assert canonical_bytes([value, int(value)]) == f"[{str(value).lower()},{int(value)}]".encode()


def test_a_hash_names_its_algorithm() -> None:
    assert sha256_hex(b"abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()
