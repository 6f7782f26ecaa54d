import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.schemas.parser import MAX_INTEGER, parse_body
from ipc.limits import MAX_VALUES_JSON

MEBIBYTE = 1_048_576


def reason_of(body: bytes) -> str:
    with pytest.raises(GateError) as refused:
        parse_body(body)
    assert (refused.value.code, refused.value.status) == ("schema_violation", 422)
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    return str(refused.value.extra["reason"])


def test_a_missing_body_is_an_empty_object() -> None:
    assert parse_body(b"") == {}


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b" ", "json"),
        (b"{", "json"),
        (b"{} {}", "json"),
        (b"{'a': 1}", "json"),
        (b"[1,]", "json"),
        (b"[01]", "json"),
        (b'"a\nb"', "json"),
        (b"// c\n{}", "json"),
        (b"\xef\xbb\xbf{}", "json"),
        (b"{}\x00", "json"),
        (b"[NaN]", "json"),
        (b"[Infinity]", "json"),
        (b"[-Infinity]", "json"),
        (b"[1e400]", "number_range"),
        (b"[-1e400]", "number_range"),
        (b"[9007199254740992]", "number_range"),
        (b"[-9007199254740992]", "number_range"),
        (b"[{}, [123456789012345678901234567890]]", "number_range"),
        (b"1" * MEBIBYTE, "number_range"),
        (b'"\xff"', "utf8"),
        (b'{"\xc0\xaf": 1}', "utf8"),
        (b'"\xed\xa0\x80"', "utf8"),
        (b'"\\ud800"', "json"),
        (b'"\\udc00\\ud800"', "json"),
        (b'"\\ufdd0"', "noncharacter"),
        ('{"\uffff": 1}'.encode(), "noncharacter"),
        ('["\U0010fffe"]'.encode(), "noncharacter"),
        (b'{"a": 1, "a": 1}', "duplicate_key"),
        (b'{"a":1,"\\u0061":2}', "duplicate_key"),
        (b'[{"b": {"x": ":", "x" : 1}}]', "duplicate_key"),
        (b'{"a":"\\\\","a":"\\":"}', "duplicate_key"),
        (b"[" * 33 + b"]" * 33, "depth"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "depth"),
        (b"[" * MAX_VALUES_JSON, "values"),
        (b"[" * (MAX_VALUES_JSON - 1), "depth"),
        (b'{"a":' * (MAX_VALUES_JSON - 1), "depth"),
        (b'{"a":' * (MEBIBYTE // 5), "values"),
    ],
)
def test_what_is_not_i_json_is_refused_by_rule(body: bytes, rule: str) -> None:
    assert reason_of(body) == f"(body): {rule}"


@pytest.mark.parametrize(
    "body",
    [
        b"null", b"0", b"-0", b"1.5e3", b'""', b"[]", b"  {}\r\n", b'{"a":":","b":"\\"::{}[]"}', b'"\\u0000"',
        b"[9007199254740991, -9007199254740991, 1e300, 0.1]", b'"1234567890123456789"', b"[" * 32 + b"]" * 32,
        '"😀\\ud83d\\ude00é"'.encode(), b'[{"a":1},{"a":1}]', b'{"a":{"a":{"a":1}}}', b"[0.1234567890123456789]",
    ],
)  # fmt: skip
def test_what_is_i_json_is_taken_as_the_standard_library_takes_it(body: bytes) -> None:
    assert parse_body(body) == json.loads(body)


def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def is_i_json(value: Any) -> bool:
    if isinstance(value, str):
        return not any(
            0xFDD0 <= ord(c) <= 0xFDEF or ord(c) & 0xFFFE == 0xFFFE or 0xD800 <= ord(c) < 0xE000 for c in value
        )
    if isinstance(value, list):
        return all(map(is_i_json, value))
    if isinstance(value, dict):
        return all(is_i_json(key) and is_i_json(item) for key, item in value.items())
    return not isinstance(value, float) or math.isfinite(value)


i_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
).filter(is_i_json)


@given(i_json, st.booleans(), st.sampled_from([None, 2]))
def test_every_i_json_value_comes_back(value: Any, escape: bool, indent: int | None) -> None:
    assert parse_body(json.dumps(value, ensure_ascii=escape, indent=indent).encode()) == value


@given(st.binary(max_size=40) | st.text('{}[]":,\\u0019eE.-+ntf ', max_size=30).map(str.encode))
def test_any_bytes_are_i_json_or_refused(body: bytes) -> None:
    try:
        value = parse_body(body)
    except GateError:
        return
    if body:
        assert value == json.loads(body, object_pairs_hook=no_duplicates)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", '"', "\\", ":", "é"]), st.text('":{}\\ab', max_size=4)), max_size=5)
)
def test_duplicate_keys_are_found_however_they_are_spelt(pairs: list[tuple[str, str]]) -> None:
    body = "{" + ",".join(f"{json.dumps(key)} \t: {json.dumps(value)}" for key, value in pairs) + "}"
    if len(dict(pairs)) == len(pairs):
        assert parse_body(body.encode()) == dict(pairs)
    else:
        assert reason_of(body.encode()) == "(body): duplicate_key"


@pytest.mark.parametrize("value", [b"1", b'"a"', b"{}", b"[]", b'{"a":1}', b'{"":"\\\\","b":[{}]}'])
def test_a_body_has_a_bounded_number_of_values(value: bytes) -> None:
    most = (MAX_VALUES_JSON - 1) // (1 + value.count(b"{") + value.count(b"[") + value.count(b","))
    assert len(parse_body(b"[" + b",".join([value] * most) + b"]")) == most
    assert reason_of(b"[" + b",".join([value] * (MAX_VALUES_JSON + 1)) + b"]") == "(body): values"


def test_what_stands_in_texts_is_not_counted_as_values() -> None:
    text = "[{,}]" * MAX_VALUES_JSON + '"\\' * 9
    assert parse_body(json.dumps({"text": text, "[,{": [text]}).encode()) == {"text": text, "[,{": [text]}
