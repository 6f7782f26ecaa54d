"""Canonical bytes: RFC 8785, whoever writes them."""

import hashlib
import json
import re
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from ipc.canonical import (
    MAX_SAFE_INTEGER,
    NotCanonical,
    canonical_bytes,
    durable_bytes,
    is_plain,
    sha256_hex,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
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
def test_for_any_value_the_bytes_are_those_of_the_rfc(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


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
def test_known_values(value: Any, written: bytes) -> None:
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
        {"a": "\udfff"}, {1: 2}, {None: 1}, b"x", {1, 2}, object(), [[float("nan")]],
    ],
)  # fmt: skip
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        canonical_bytes(value)
    with pytest.raises(NotCanonical):
        canonical_bytes({"deep": [value]})


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(NotCanonical):
        canonical_bytes(_deep())


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_number(value: bool) -> None:
    assert canonical_bytes([value, int(value)]) == f"[{str(value).lower()},{int(value)}]".encode()


def test_a_hash_names_its_algorithm() -> None:
    assert sha256_hex(b"abc") == "sha256:" + hashlib.sha256(b"abc").hexdigest()
