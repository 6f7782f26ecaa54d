"""The rules for a provider's output."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.limits import MAX_VALUES_JSON
from workers.runtime.output import BadOutput, parse_output


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a":1}',
        '{"a":{"a":":"},"b":["x:y",{"c":null}]}',
        '{"a":9007199254740991}',
        '{"\\u0061":"\\ud83d\\ude00"}',
    ],
)
def test_one_object_is_taken_as_it_is(text: str) -> None:
    assert parse_output(text, 1000) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"a":NaN}', "not JSON"),
        ('{"a":1e999}', "not JSON"),
        ('{"a":"\\ud800"}', "not JSON"),
        ("[1]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ('{"a":1,"a":2}', "twice"),
        ('{"a":1,"\\u0061":2}', "twice"),
        ('{"x":[{"a":1,"a":":"}]}', "twice"),
        ('{"a":9007199254740992}', "integer"),
        ('{"a":' + "[" * 32 + "]" * 32 + "}", "deeply"),
        ('{"a":' + "[" * 5000 + "]" * 5000 + "}", "deeply"),
        ('{"a":"' + "x" * 1000 + '"}', "more than 1000 bytes"),
    ],
)  # fmt: skip
def test_anything_that_two_readers_could_read_differently_is_refused(text: str, word: str) -> None:
    cap = 1000 if "x" * 1000 in text else 100_000
    with pytest.raises(BadOutput, match=word):
        parse_output(text, cap)


@pytest.mark.parametrize("value", ["0", "{}", "[0]", '"{,["', '{"a":"\\","}'])
def test_an_answer_has_a_bounded_number_of_values(value: str) -> None:
    many = '{"a":[' + ",".join([value] * MAX_VALUES_JSON) + "]}"
    with pytest.raises(BadOutput, match=f"more than {MAX_VALUES_JSON} values"):
        parse_output(many, len(many))
    few = '{"a":[' + ",".join([value] * (MAX_VALUES_JSON // 4)) + "]}"
    assert parse_output(few, len(few)) == json.loads(few)


def test_a_string_is_one_value_with_any_content() -> None:
    text = '{"a":"' + '{[,\\"' * MAX_VALUES_JSON + '"}'
    assert parse_output(text, len(text)) == json.loads(text)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=10,
    )
)  # fmt: skip
def test_every_i_json_object_is_taken(value: object) -> None:
    assert parse_output(json.dumps({"v": value}), 1_000_000) == {"v": value}
