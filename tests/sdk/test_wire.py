"""Addresses, paths, answers and their decoding: what is accepted, what is refused, what never shows."""

import json
from typing import Any, Literal

import httpx
import msgspec
import pytest
from gateway_client import (
    ActionFailed,
    Address,
    AuthenticationFailed,
    Conflict,
    Denied,
    GatewayError,
    GatewayFault,
    Invalid,
    Limits,
    NotFound,
    ProtocolViolation,
    RateLimited,
    Unavailable,
    Unreachable,
)
from gateway_client.contract.learned import Cleared, Removed
from gateway_client.contract.noun import LEFT_OUT, Listed, NeverNull, Noun
from gateway_client.contract.receipts import Receipt
from gateway_client.hints import HINTS, OF_FAULT, OF_UNAVAILABLE
from gateway_client.running.sending import http_request
from gateway_client.wire.decoding import decode, parse_json
from gateway_client.wire.exchange import ReceivedAnswer, SentRequest, path_of, query_of
from hypothesis import given
from hypothesis import strategies as st

from tests.support.played_gateway import RECEIPT, answer, refusal


@pytest.mark.parametrize(
    ("text", "public", "expected"),
    [
        ("http://h:3000", None, (None, "http://h:3000", "http://h:3000")),
        ("http://H:3000/", None, (None, "http://h:3000", "http://h:3000")),
        ("https://h", "https://public/base/", (None, "https://h", "https://public/base")),
        ("http://[::1]:3000", None, (None, "http://[::1]:3000", "http://[::1]:3000")),
        ("unix:///run/g.sock", "http://h", ("/run/g.sock", "http://localhost", "http://h")),
        ("unix:///run/a%20b.sock", "http://h", ("/run/a b.sock", "http://localhost", "http://h")),
    ],
)
def test_an_address_is_a_socket_or_an_origin(text: str, public: str | None, expected: tuple[str | None, ...]) -> None:
    address = Address.parse(text, public)
    assert (address.socket, address.origin, address.public_base_url) == expected


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("unix:///run/g.sock", None), ("unix://run/g.sock", "http://h"), ("unix:g.sock", "http://h"),
        ("unix:///run/g.sock?x=1", "http://h"), ("unix:///run/%00", "http://h"), ("ftp://h", None), ("h:3000", None),
        ("", None), ("http://", None),
        ("http://h/path", None), ("http://u:secret@h", None), ("http://h?x=secret", None),
        ("http://h#secret", None), ("http://h:0", None), ("http://h:99999", None), ("http://hü", None),
        ("http://h\n:3000", None), ("http://h /", None),
        ("http://h", "http://u:secret@h"), ("http://h", "h"), ("http://h", ""),
    ],
)  # fmt: skip
def test_a_malformed_address_is_refused_without_repeating_it(text: str, public: str | None) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - each has its own words
        Address.parse(text, public)
    assert "secret" not in str(raised.value)


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_path_arrives_as_it_was_proven(segment: str, value: str) -> None:
    if segment in {"", ".", ".."} or not segment.isprintable():
        return
    path = path_of("v1", segment)
    assert path.count("/") == 2
    target = f"{path}?{query_of(q=value)}"
    request = http_request(Address.parse("http://h"), SentRequest("GET", target, ()), Limits(), 1.0)
    assert request.url.raw_path.decode() == target
    assert httpx.QueryParams(request.url.query.decode())["q"] == value


@pytest.mark.parametrize("segment", ["", ".", ".."])
def test_a_segment_that_would_change_the_path_is_refused(segment: str) -> None:
    with pytest.raises(ValueError, match="identifier"):
        path_of("v1", segment)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid), (401, AuthenticationFailed), (403, Denied), (404, NotFound), (405, Invalid), (408, Invalid),
        (409, Conflict), (413, Invalid), (415, Invalid), (418, Invalid), (422, Invalid), (429, RateLimited),
        (431, Invalid), (500, GatewayFault), (501, GatewayFault), (502, ActionFailed), (503, Unavailable),
        (504, GatewayFault), (302, ProtocolViolation), (204, ProtocolViolation),
    ],
)  # fmt: skip
def test_an_answer_becomes_the_error_of_its_status(status: int, kind: type[GatewayError]) -> None:
    error = answer(status, {"error": "some_code", "reason": "why"}, retry_after="7", x_trace_id="trc_1").error()
    assert type(error) is kind
    assert error.status == status
    if kind is not ProtocolViolation:
        assert (error.code, error.reason, error.retry_after, error.trace_id) == ("some_code", "why", 7.0, "trc_1")
        assert str(error) == f"some_code ({status}): why [trc_1]"


def test_only_an_answer_before_dispatch_says_that_nothing_ran() -> None:
    assert not refusal(403, "policy_denied").error().may_have_run
    assert not refusal(503, "draining").error().may_have_run
    assert not refusal(503, "budget_store_unavailable").error().may_have_run
    assert refusal(503, "approval_store_unavailable").error().may_have_run
    assert refusal(500, "evidence_persistence_failed").error().may_have_run
    assert refusal(502, "action_execution_failed").error().may_have_run
    assert answer(200, {}).error().may_have_run


@pytest.mark.parametrize(
    ("failure", "effect", "may_have_run", "is_retryable"),
    [
        ("upstream_unreachable", "no", False, True),
        ("limit_fuel", "no", False, False),
        ("upstream_reset", "unknown", True, False),
        ("upstream_status", "yes", True, False),
        ("of_a_newer_gateway", "perhaps", True, False),
    ],
)
def test_a_failed_action_may_be_repeated_only_where_the_gateway_says_that_it_has_not_run(
    failure: str, effect: str, may_have_run: bool, is_retryable: bool
) -> None:
    error = answer(502, {"error": "action_execution_failed"}, x_failure=failure, x_may_have_run=effect).error()
    is_known = effect != "perhaps"
    assert (error.failure, error.effect) == ((failure, effect) if is_known else (None, None))
    assert (error.may_have_run, error.is_retryable) == (may_have_run, is_retryable)
    assert ("may be repeated" in error.hint) is not may_have_run


def test_an_error_says_what_is_worth_another_try_and_never_of_what_may_have_run() -> None:
    for status in (400, 401, 403, 404, 409, 422, 429, 500, 502, 503):
        for code in HINTS:
            error = refusal(status, code).error()
            assert not (error.is_retryable and error.may_have_run), error
            assert error.hint == HINTS[code]
    assert refusal(429, "rate_limit_exceeded").error().is_retryable
    assert refusal(503, "draining").error().is_retryable
    assert refusal(401, "replay_detected").error().is_retryable
    assert not refusal(503, "identity_provider_unavailable").error().is_retryable
    assert answer(503, {"error": "identity_provider_unavailable"}, retry_after="5").error().is_retryable
    assert not refusal(422, "schema_violation").error().is_retryable
    assert not Unreachable("connection_lost").is_retryable
    unsent = Unreachable("timed_out", was_sent=False)
    assert unsent.is_retryable
    assert "nothing was sent" in unsent.hint
    assert refusal(503, "new_code").error().hint == OF_UNAVAILABLE
    assert refusal(500, "new_code").error().hint == OF_FAULT


def test_a_failed_action_names_its_receipt_and_its_own_words_where_they_are_sent() -> None:
    body = {"error": "action_execution_failed"}
    error = answer(502, body, x_receipt_id="rcpt_1", x_provider_error='"the acc\\u202eount is closed"').error()
    assert (error.receipt_id, error.reason) == ("rcpt_1", "the account is closed")
    error = answer(502, body, x_receipt_id="no id\n", x_provider_error="not quoted").error()
    assert (error.receipt_id, error.reason) == (None, None)


def test_every_textual_violation_of_a_schema_is_reported() -> None:
    body = {"error": "schema_violation", "reason": "/a: is missing", "violations": ["/a: is missing", 5, "/b\x1b: x"]}
    assert answer(422, body).error().violations == ("/a: is missing", "/b: x")


def test_names_that_are_close_are_suggested_a_few_of_them_and_only_as_text() -> None:
    error = answer(404, {"error": "action_not_found", "did_you_mean": ["a\x1b", 1, *"bcdefgh"]}).error()
    assert error.suggestions == ("a", "b", "c", "d", "e")
    assert answer(404, {"error": "action_not_found", "did_you_mean": "x"}).error().suggestions == ()


def test_the_text_of_an_error_has_every_place_and_every_name_that_mends_the_call() -> None:
    wrong = {
        "error": "schema_violation",
        "reason": "/a: is missing",
        "violations": ["/a: is missing", "/b: is missing"],
    }
    assert "(422): /a: is missing; /b: is missing" in str(answer(422, wrong).error())
    unknown = answer(404, {"error": "action_not_found", "did_you_mean": ["text_digest", "text_digests"]}).error()
    assert "(404): did you mean text_digest or text_digests?" in str(unknown)


@pytest.mark.parametrize("text", ["127.0.0.1:3000", "localhost:3000", "h:3000", "/run/gate.sock", ""])
def test_an_address_without_a_scheme_is_refused_with_the_scheme_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="lacks its scheme: http://HOST:PORT, or unix:///"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "http_403"),
        ({"error": 1}, "http_403"),
        ({"error": "No Code!"}, "unknown_error"),
        ({"error": ""}, "unknown_error"),
    ],
)
def test_an_error_without_a_code_still_has_a_name(body: Any, code: str) -> None:
    assert answer(403, body).error().code == code


def test_a_reason_can_not_deceive_a_terminal_nor_flood_it() -> None:
    error = answer(403, {"error": "policy_denied", "deny_reason": "a\x1b[2J\u202eb\u2028c" + "x" * 1000}).error()
    assert error.reason is not None
    assert error.reason.startswith("a[2Jbcx")
    assert len(error.reason) == 500


@pytest.mark.parametrize("value", ["", "soon", "-1", "1.5", "Fri, 31 Dec 2100 23:59:59 GMT", "٣", "9" * 30])
def test_another_form_of_retry_after_is_passed_over(value: str) -> None:
    assert answer(503, {"error": "x"}, retry_after=value).retry_after is None
    assert answer(503, {"error": "x"}, retry_after="999999999").retry_after == 3600


def test_unknown_members_of_an_answer_are_kept_and_no_error() -> None:
    receipt = decode(Receipt, RECEIPT | {"new": {"field": 1}}, "receipt")
    assert receipt.raw["new"] == {"field": 1}
    assert receipt.receipt_signature is None


class Sample(Noun, frozen=True, kw_only=True):
    """A result with every kind of field."""

    text: str
    number: int = 1
    share: float | None = None
    many: tuple[int, ...] = ()
    by_name: dict[str, int] | None = None
    free: Any = None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "sample is not an object"), ({}, "sample has no text"), ({"text": None}, "sample.text is not of type str"),
        ({"text": 1}, "sample.text is not of type str"), ({"text": "", "number": True}, "sample.number is not of type"),
        ({"text": "", "number": 1.5}, "sample.number is not of type"), ({"text": "", "many": {}}, "many is not an"),
        ({"text": "", "many": [1, "2"]}, r"many\[1\] is not of type"), ({"text": "", "by_name": []}, "not an object"),
        ({"text": "", "by_name": {"a": "b"}}, "by_name.* is not of type int"),
    ],
)  # fmt: skip
def test_a_field_of_another_type_is_named_and_its_value_is_not(value: Any, problem: str) -> None:
    with pytest.raises(ProtocolViolation, match=problem):
        decode(Sample, value, "sample")


def test_fields_with_a_default_may_be_absent_or_null() -> None:
    sample = decode(Sample, {"text": "a", "number": None, "share": 2, "many": [1], "by_name": {"a": 1}}, "sample")
    assert (sample.number, sample.share, sample.many, sample.by_name, sample.free) == (1, 2, (1,), {"a": 1}, None)


class Declared(Noun, frozen=True, kw_only=True):
    """A noun with what the gateway declares strictly."""

    state: Literal["open", "shut"]
    number: NeverNull[int]
    left_out: NeverNull[str] = LEFT_OUT
    many: Listed[str]
    none: str | None
    reserved: None
    seen: Sample | None


def test_a_client_takes_what_a_gateway_of_another_version_sends() -> None:
    least = decode(Declared, {"state": "open"}, "noun")
    assert (least.number, least.left_out, least.many, least.none, least.reserved, least.seen) == (
        None, None, (), None, None, None,
    )  # fmt: skip
    told = {"state": "ajar", "number": None, "reserved": {"a": 1}, "seen": {"text": "a", "new": 2}, "new": 3}
    later = decode(Declared, told, "noun")
    members: dict[str, Any] = msgspec.structs.asdict(later)
    assert (members["state"], members["number"], members["reserved"], later.raw) == ("ajar", None, {"a": 1}, told)
    assert later.seen is not None
    assert (later.seen.text, later.seen.raw) == ("a", {"text": "a", "new": 2})


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({}, "noun has no state"), ({"state": None}, "noun.state is not of type str"),
        ({"state": "open", "number": "1"}, "noun.number is not of type int"),
        ({"state": "open", "many": [1]}, r"noun.many\[0\] is not of type str"),
        ({"state": "open", "seen": {}}, "noun.seen has no text"),
    ],
)  # fmt: skip
def test_a_client_refuses_what_is_missing_or_of_another_type(told: dict[str, Any], problem: str) -> None:
    with pytest.raises(ProtocolViolation, match=problem):
        decode(Declared, told, "noun")


@pytest.mark.parametrize("kind", [Removed, Cleared])
def test_a_removal_that_the_gateway_does_not_confirm_is_no_removal(kind: type[Noun]) -> None:
    with pytest.raises(ProtocolViolation, match="has no"):
        decode(kind, {"count": 1}, "removal")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
        max_leaves=10,
    )
)
def test_any_json_decodes_or_is_a_protocol_violation(value: Any) -> None:
    body = json.dumps(value).encode()
    assert parse_json(body, "it") == value
    for kind in (Sample, Receipt):
        try:
            decode(kind, value, "it")
        except ProtocolViolation:
            continue


def test_requests_and_answers_do_not_show_headers_or_bodies() -> None:
    shown = repr(SentRequest("GET", "/x", (("Authorization", "DPoP secret"),), b"secret"))
    shown += repr(ReceivedAnswer(200, {"x": "secret"}, b"secret", ("secret",)))
    assert "secret" not in shown
