"""http: sends the call as it stands, and carries what came back so that it can be signed."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.providers.conftest import Call, module
from tests.support.provider_host import Host, Providers

CALL: dict[str, object] = {"method": "GET", "url": "http://upstream.gateway.test/a", "headers": [], "body": None}
PROVIDERS = Providers()


def request(**changes: object) -> dict[str, object]:
    """A provider input with this call."""
    return {"request": {"path": "a"}, "call": {**CALL, **changes}}


def test_it_sends_the_call_as_it_stands_and_once(call: Call, host: Host) -> None:
    headers = [["Content-Type", "application/json"], ["X-Empty", ""], ["X-Ü", 'a"b\\']]
    call("http", request(method="POST", headers=headers, body='{"message":"grüße\\n"}'))
    (sent,) = host.sent
    assert (sent.method, sent.url, sent.body) == ("POST", CALL["url"], '{"message":"grüße\\n"}')
    assert [list(header) for header in sent.headers] == headers
    assert (sent.encoding, sent.timeout_ms) == ("utf8", None)


@pytest.mark.parametrize("status", [200, 201, 204, 302, 400, 404, 429, 499])
def test_an_answer_below_500_is_a_result_whatever_its_status(status: int, call: Call, host: Host) -> None:
    host.status, host.body = status, '{"ok": false}'
    assert call("http", request()).output == {"status": status, "body": {"ok": False}}


@pytest.mark.parametrize(("method", "retryable"), [("GET", True), ("PUT", True), ("POST", False), ("PATCH", False)])
def test_from_500_on_it_fails_and_only_what_is_idempotent_may_be_tried_again(
    method: str, retryable: bool, call: Call, host: Host
) -> None:
    host.status, host.body = 503, "secret trace"
    failure = call("http", request(method=method)).failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.details, failure.retryable) == (
        "unavailable", "the upstream answered 503", {"status": 503}, retryable,
    )  # fmt: skip


def test_what_the_host_could_not_send_is_passed_on_whole(call: Call, host: Host) -> None:
    host.refuse("timeout", "no answer in time", None, retryable=True)
    failure = call("http", request()).failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.details, failure.retryable) == (
        "timeout", "no answer in time", None, True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        (None, True), ("application/json", True), ("Application/JSON; charset=utf-8", True),
        ("application/problem+json", True), ("text/plain", False), ("text/html; x=application/json", False),
    ],
)  # fmt: skip
def test_a_body_is_json_unless_its_type_says_otherwise(
    content_type: str | None, is_json: bool, call: Call, host: Host
) -> None:
    host.headers = [("X-Other", "a")] + ([("CONTENT-TYPE", content_type)] if content_type else [])
    host.body = ' {"n": 12} '
    assert call("http", request()).output["body"] == ({"n": 12} if is_json else host.body)


@pytest.mark.parametrize(
    "body",
    [
        "", "hello", "{", "[1,]", '{"a":1,}', "01", "-", "1.", ".5", "1e", "+1", "NaN", "Infinity", "nul", "'a'",
        '"\\x"', '"a\tb"', '"\\ud800"', '"\\udc00\\ud800"', '"\\ud800\\u0041"', "[1] [2]", "\ufeff[]", "\x00",
        "[1\x00]", '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', '[{"b":{"x":1,"y":2,"x":3}}]', "9007199254740992",
        "-9007199254740992", "12345678901234567890123", "1e309", "-1e309", "1.8e308",
        "179769313486231581" + "0" * 291 + ".0", "[" * 32 + "]" * 32, '{"a":' * 32 + "1" + "}" * 32,
    ],
)  # fmt: skip
def test_a_body_that_could_not_be_signed_as_json_is_carried_as_text(body: str, call: Call, host: Host) -> None:
    host.body = body
    assert call("http", request()).output == {"status": 200, "body": body}


@pytest.mark.parametrize(
    "body",
    [
        "null", "true", "false", "0", "-0", "-0.0", "1e0", "1E+2", "0.1e-7", "9007199254740991", "-9007199254740991",
        "1e308", "1.7976931348623157e308", "179769313486231580" + "0" * 291 + ".0",
        "0.00000000000000000000000000000000001e+340", "1e-400", "0e999999999999",
        '""', '"\\ud83d\\ude00"', '"\\u0000"', "[]", "{}", "[[],{}]", ' [ 1 , "a" , { "k" : null } ] ',
        '[{"a":1},{"a":1}]', '{"a":{"a":{"a":1}},"b":{"a":1}}', "[" * 31 + "]" * 31,
    ],
)  # fmt: skip
def test_a_body_that_can_be_signed_is_carried_as_json(body: str, call: Call, host: Host) -> None:
    host.body = body
    assert call("http", request()).output == {"status": 200, "body": json.loads(body)}


class NotInterchangeableError(Exception):
    """The text is JSON, but not I-JSON."""


def oracle(body: str) -> object:
    """The expected body of the output, by Python's own parser and the rules of RFC 7493."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise NotInterchangeableError
        return dict(pairs)

    def whole(text: str) -> int:
        if abs(int(text)) >= 2**53:
            raise NotInterchangeableError
        return int(text)

    def real(text: str) -> float:
        if not math.isfinite(float(text)):
            raise NotInterchangeableError
        return float(text)

    def constant(_name: str) -> object:
        raise NotInterchangeableError

    try:
        value = json.loads(body, object_pairs_hook=unique, parse_int=whole, parse_float=real, parse_constant=constant)
        json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate fails here
    except (ValueError, NotInterchangeableError, RecursionError):
        return body
    return value


leaves = (
    st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.text(max_size=6)
    | st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """JSON texts, most of them with a small injury."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\t")]))
    text = json.dumps(draw(values), ensure_ascii=draw(st.booleans()), separators=separators)
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = (
            text[:at]
            + draw(st.sampled_from(["", *'"\\{}[],:0123456789eE+-. \n\t\x01ué', "\\u", "null"]))
            + text[at + cut :]
        )
    return text


@given(body=bodies())
def test_it_agrees_with_python_about_what_is_json(body: str) -> None:
    output = PROVIDERS.call(module("http"), request(), Host(body=body)).output
    assert output == {"status": 200, "body": oracle(body)}


def test_a_body_that_is_no_text_is_carried_as_base64_and_says_so(call: Call, host: Host) -> None:
    host.body, host.encoding, host.headers = "//79", "base64", [("content-type", "application/json")]
    assert call("http", request()).output == {"status": 200, "body": "//79", "body_encoding": "base64"}


@pytest.mark.large
@pytest.mark.parametrize(
    "element", ["[1],", '{"k":"' + "v" * 50 + '"},', '"\\u00fc",'], ids=["lists", "objects", "escapes"]
)
def test_a_mebibyte_of_body_fits_the_default_memory(element: str, call: Call, host: Host) -> None:
    host.body = "[" + element * (1_048_576 // len(element)) + "0]"
    assert call("http", request(), fuel=400_000_000).output["body"] == json.loads(host.body)


def test_a_body_of_many_keys_is_checked_within_the_default_memory(call: Call, host: Host) -> None:
    host.body = json.dumps({str(n): n for n in range(60_000)})
    assert len(call("http", request(), fuel=800_000_000).output["body"]) == 60_000


@pytest.mark.parametrize(
    ("input_", "field"),
    [
        ({}, "call"), ([], "call"), ({"call": 1}, "method"), (request(method=None), "method"),
        (request(url=1), "url"), (request(headers={}), "headers"), (request(headers=[["a"]]), "headers"),
        (request(headers=[["a", 1]]), "headers"), (request(headers=[["a", "b", "c"]]), "headers"),
        (request(headers=["ab"]), "headers"), (request(body={}), "body"),
    ],
)  # fmt: skip
def test_an_input_that_is_no_call_sends_nothing_and_names_the_field(
    input_: object, field: str, call: Call, host: Host
) -> None:
    failure = call("http", input_).failure
    assert failure is not None
    assert (failure.kind, failure.details) == ("invalid-input", {"field": field})
    assert host.sent == []


def test_the_guest_library_carries_every_part_of_a_request_and_a_response(call: Call, host: Host) -> None:
    host.status, host.headers, host.body = 404, [("A", "1"), ("a", "2")], "gone"
    steps = [
        {"url": "http://a/"},
        {
            "method": "PUT",
            "url": "http://b/",
            "headers": {"X": "y"},
            "body": "AAE=",
            "encoding": "base64",
            "timeout_ms": 1500,
        },
    ]
    results = call("http_probe", {"steps": steps}).output["results"]
    headers = [{"name": "A", "value": "1"}, {"name": "a", "value": "2"}]
    assert results == [{"status": 404, "headers": headers, "body": "gone", "encoding": "utf8"}] * 2
    assert vars(host.sent[1]) == {
        "method": "PUT", "url": "http://b/", "headers": [("X", "y")], "body": "AAE=", "encoding": "base64",
        "timeout_ms": 1500,
    }  # fmt: skip
