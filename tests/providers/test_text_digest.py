"""text_digest and echo: right about every text, within their limits, clear about bad input."""

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.conftest import Call, module
from tests.support.provider_host import Providers

WHITE_SPACE = re.compile(r"[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
PROVIDERS = Providers()


def expected(text: str) -> dict[str, object]:
    """The same figures by Python's own means."""
    return {
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "bytes": len(text.encode()),
        "characters": len(text),
        "words": len([word for word in WHITE_SPACE.split(text) if word]),
        "lines": text.count("\n") + (text != "" and not text.endswith("\n")),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n",
        "a",
        "a\n",
        "a\nb",
        "a\r\nb\r\n",
        "two  words",
        "naïve café",
        "日本\u3000語",
        "👩‍👩‍👧 family",
        "\x00\x1f\x7f",
        "\u200b",
        '"\\/',
    ],
)
def test_it_counts_and_digests(text: str, call: Call) -> None:
    assert call("text_digest", {"text": text}).output == expected(text)


@given(text=st.text(max_size=80), ascii_only=st.booleans())
def test_any_text_in_any_spelling_gives_the_same_figures_as_python(text: str, ascii_only: bool) -> None:
    request = json.dumps({"before": [1, {"text": "no"}], "text": text}, ensure_ascii=ascii_only)
    assert PROVIDERS.call(module("text_digest"), request).output == expected(text)


def test_a_key_spelt_with_escapes_is_the_same_key(call: Call) -> None:
    assert call("text_digest", '{"\\u0074ext": "a"}').output == expected("a")


def test_a_mebibyte_of_text_fits_the_default_memory_and_400_million_fuel(call: Call) -> None:
    text = 'grüße, "quoted"\n' * 65_536
    outcome = call("text_digest", {"text": text}, fuel=400_000_000, memory_mb=64)
    assert outcome.output == expected(text)


def test_a_text_larger_than_the_memory_fails_and_does_not_pass_for_a_result(call: Call) -> None:
    with pytest.raises(Exception, match=r"realloc|memory|unreachable"):
        call("text_digest", {"text": "x" * (20 << 20)}, memory_mb=16)


@pytest.mark.parametrize("request_", ["{}", '{"text": null}', '{"text": 1}', '{"text": ["a"]}', "[]", '"text"', "null"])
def test_a_request_without_a_text_is_invalid_and_the_field_is_named(request_: str, call: Call) -> None:
    failure = call("text_digest", request_).failure
    assert failure is not None
    assert (failure.kind, failure.details, failure.retryable) == ("invalid-input", {"field": "text"}, False)


@pytest.mark.parametrize("request_", ["", "{", '{"text": "a"', '{"text": "a"} x', '{"text": "\\ud800"}', "nope"])
def test_what_is_not_json_is_invalid(request_: str, call: Call) -> None:
    failure = call("text_digest", request_).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("invalid-input", "input is not JSON")


def test_a_deep_request_is_refused_and_does_not_exhaust_the_stack(call: Call) -> None:
    assert call("text_digest", {"text": "a", "deep": nested(63)}).output == expected("a")
    failure = call("text_digest", '{"text": "a", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}").failure
    assert failure is not None
    assert failure.kind == "invalid-input"


def nested(levels: int) -> object:
    """A list in a list, `levels` deep."""
    value: object = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("text", ["", "{}", "not JSON", "ü\x00", "x" * 1_048_576])
def test_echo_answers_what_it_was_given(text: str, call: Call) -> None:
    assert call("echo", text).text == text


def test_equal_calls_take_equal_fuel(call: Call) -> None:
    assert call("text_digest", {"text": "same"}).fuel == call("text_digest", {"text": "same"}).fuel
