"""Heads: what is read out of them, what is refused, and that any bytes end in one or the other."""

import contextlib

import pytest

from frontend.errors import GateError
from frontend.http.heads import MAX_HEAD_BYTES, MAX_HEADERS, head_size, parse_head


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def code_of(data: bytes) -> str:
    with pytest.raises(GateError) as caught:
        parse_head(data)
    return caught.value.code


def test_a_head_is_read_as_sent() -> None:
    parsed = parse_head(
        head(
            "POST /v1/a%2Fb?x=1&y=?2 HTTP/1.1",
            "Host: gateway:3000",
            "DPoP:  one ",
            "dpop: tw\xf6",
            "Content-Length: 12",
        )
    )
    assert (parsed.method, parsed.path, parsed.query) == ("POST", "/v1/a%2Fb", "x=1&y=?2")
    assert parsed.headers == [("host", "gateway:3000"), ("dpop", "one"), ("dpop", "tw\xf6"), ("content-length", "12")]
    assert (parsed.length, parsed.is_chunked, parsed.keeps_alive, parsed.expects_continue) == (12, False, True, False)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("http://other.example/v1/actions?x", "/v1/actions", "x"),
        ("HTTP://other.example:80/v1//a/../b", "/v1//a/../b", ""),
        ("https://other.example", "/", ""),
        ("https://other.example?x=/", "/", "x=/"),
        ("//double/slash", "//double/slash", ""),
        ("/?", "/", ""),
        ("/a\\b|c", "/a\\b|c", ""),
    ],
)
def test_the_path_is_taken_raw_from_either_form_of_target(target: str, path: str, query: str) -> None:
    parsed = parse_head(head(f"GET {target} HTTP/1.1", "Host: x"))
    assert (parsed.path, parsed.query) == (path, query)


@pytest.mark.parametrize(
    ("lines", "keeps", "continues"),
    [
        (("GET / HTTP/1.1", "Host: x", "Connection: keep-alive, Close"), False, False),
        (("GET / HTTP/1.1", "Host: x", "Connection: keep-alive", "Connection: close"), False, False),
        (("GET / HTTP/1.1", "Host: x", "Connection: closed"), True, False),
        (("GET / HTTP/1.0",), False, False),
        (("GET / HTTP/1.0", "Connection: keep-alive", "Expect: 100-continue"), False, False),
        (("GET / HTTP/1.1", "Host: x", "Expect: 100-Continue"), True, True),
        (("GET / HTTP/1.1", "Host: x", "Upgrade: h2c", "Connection: Upgrade"), True, False),
    ],
)
def test_what_the_connection_does_afterwards(lines: tuple[str, ...], keeps: bool, continues: bool) -> None:
    parsed = parse_head(head(*lines))
    assert (parsed.keeps_alive, parsed.expects_continue) == (keeps, continues)


def test_a_head_may_come_in_any_pieces() -> None:
    whole = head("GET / HTTP/1.1", "Host: x", "A: b") + b"rest"
    for cut in range(1, len(whole)):
        buffer = bytearray(whole[:cut])
        size = head_size(buffer, 0)
        buffer += whole[cut:]
        assert (size or head_size(buffer, cut)) == len(whole) - 4


def test_the_largest_head_passes_and_one_byte_more_does_not() -> None:
    frame = head("GET / HTTP/1.1", "Host: x", "A: ")
    largest = frame[:-4] + b"a" * (MAX_HEAD_BYTES - len(frame)) + b"\r\n\r\n"
    assert head_size(bytearray(largest), 0) == MAX_HEAD_BYTES
    assert parse_head(largest).path == "/"
    with pytest.raises(GateError) as caught:
        head_size(bytearray(largest[:-4] + b"a\r\n\r\n"), 0)
    assert caught.value.code == "headers_too_large"


def test_a_hundred_headers_pass_and_one_more_does_not() -> None:
    lines = ["GET / HTTP/1.1", "Host: x", *[f"A{number}: b" for number in range(MAX_HEADERS - 1)]]
    assert len(parse_head(head(*lines)).headers) == MAX_HEADERS
    assert code_of(head(*lines, "One: more")) == "headers_too_large"


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02", b" GET / ", b"\r\n", b"\0", b"GET / HTTP/1.1\nHost: x\n", b"\xff"]
)
def test_an_impossible_head_is_refused_before_it_ends(data: bytes) -> None:
    with pytest.raises(GateError) as caught:
        head_size(bytearray(data), 0)
    assert caught.value.code == "bad_request"


def test_reasons_never_repeat_what_the_client_sent() -> None:
    with pytest.raises(GateError) as caught:
        parse_head(head("GET / HTTP/1.1", "Host: x", "Authorization DPoP secret-token"))
    assert "secret" not in str(caught.value.body()) + str(caught.value.cause)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Host: x", "more than one Host"),
        ("Content-Length: 5", "more than one Host, Content-Length"),
        ("X: a\nY: b", "does not end in CR LF"),
        ("X: a\0", "control character"),
        (" X: a", "folded"),
        ("Content-Length : 5", "malformed"),
    ],
)
def test_a_refusal_says_what_is_wrong(line: str, reason: str) -> None:
    with pytest.raises(GateError) as caught:
        parse_head(head("POST / HTTP/1.1", "Host: x", "Content-Length: 5", line))
    assert reason in caught.value.body()["reason"]


@pytest.mark.parametrize("filler", ["a", ":", " ", "\t", "a:", ": ", "\r\n", "a:\r\n", "\n", "/", "GET / HTTP/1.1"])
def test_no_head_takes_more_steps_than_it_has_bytes(filler: str) -> None:
    # A pattern that could give back and try again would not end within a test's patience on one of these.
    size = 40 * MAX_HEAD_BYTES
    for start in ("", "GET /", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA"):
        with contextlib.suppress(GateError):
            parse_head((start + filler * (size // len(filler)) + "\r\n\r\n").encode())
