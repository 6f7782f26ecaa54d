"""One spelling for each value: base64url and JSON objects."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.texts.encoding import b64url_decode, b64url_encode, decode_object


@given(st.binary(max_size=200))
def test_encoding_and_decoding_are_inverse_and_agree_with_the_standard_library(data: bytes) -> None:
    text = b64url_encode(data)
    assert text == base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    assert b64url_decode(text) == data


@given(st.text(alphabet="ABab01-_+/= \n\t.é\u212a", max_size=12) | st.text(max_size=12))
def test_only_canonical_encodings_are_decoded(text: str) -> None:
    try:
        data = b64url_decode(text)
    except ValueError:
        return
    assert b64url_encode(data) == text


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', '{"a":1, "\\u0061":2}', '{"b":{"a":1,"a":2}}', '{"b":[{"a":1,"a":2}]}', '{"a":1,"b":2,"a":3}',
     '{"":0,"":0}', '{"a":{},"a":{}}', '{"\\n":1,"\\u000a":1}'],
)  # fmt: skip
def test_a_name_that_stands_twice_is_refused_at_any_depth_and_in_any_spelling(text: str) -> None:
    with pytest.raises(ValueError, match="duplicate member"):
        decode_object(text.encode())


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"1", b'"a"', b"[]", b"{", b"{}}", b"{} x", b"{}{}", b"\xef\xbb\xbf{}", b"{}\x00", b"{'a':1}",
     b"{a:1}", b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":01}',
     b'{"a":1,}', b'{"a":"\x01"}',
     b'{"a":"\\ud800"}', b'{"a":"\\udc00"}', b'{"a":"\\ud800\\ud800"}', b'{"a":"\\ud800x"}', b'{"\\udfff":1}',
     b'{"a":"\xff"}', b'{"a":"\xed\xa0\x80"}', b'{"a":/**/1}', '{"a":1}'.encode("utf-16"), b'{"a":' + b"[" * 99999,
     b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"a":"\xc0\xaf"}'],
    ids=lambda data: repr(data[:24]),
)  # fmt: skip
def test_a_part_that_is_not_one_strict_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_object(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), VALUES), st.sampled_from([None, 1]), st.booleans())
def test_any_object_comes_back_however_it_was_written(
    value: dict[str, Any], indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii, separators=(",", ":"))
    assert decode_object(text.encode("utf-8", "surrogatepass")) == value


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c", "é", "\n"]), st.integers(0, 9)), max_size=5), st.booleans())
def test_an_object_is_refused_exactly_when_a_name_repeats(pairs: list[tuple[str, int]], is_ascii: bool) -> None:
    members = ",".join(f"{json.dumps(name, ensure_ascii=is_ascii)}:{value}" for name, value in pairs)
    data = ("{" + members + "}").encode()
    if len(dict(pairs)) == len(pairs):
        assert decode_object(data) == dict(pairs)
    else:
        with pytest.raises(ValueError, match="duplicate member"):
            decode_object(data)
