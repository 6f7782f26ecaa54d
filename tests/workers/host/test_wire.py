"""Responses of strangers, read strictly."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.host.meter import HostError
from workers.host.wire import MAX_HEADERS, Response, encode_request, read_connect_answer, read_response

CAP = 1000


def stream(data: bytes, step: int = 65536) -> Callable[[int], bytes]:
    """The bytes in pieces of `step`, then the end."""
    left = bytearray(data)

    def receive(count: int) -> bytes:
        piece = bytes(left[: min(count, step)])
        del left[: len(piece)]
        return piece

    return receive


def read(data: bytes, method: str = "GET", cap: int = CAP, step: int = 65536) -> Response:
    return read_response(stream(data, step), method, cap)


def kind(data: bytes, method: str = "GET", cap: int = CAP) -> str:
    with pytest.raises(HostError) as caught:
        read(data, method, cap)
    return caught.value.failure.kind


@pytest.mark.parametrize("step", [1, 3, 65536])
def test_a_body_with_a_length_ends_there(step: int) -> None:
    response = read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhelloEXTRA", step=step)
    assert (response.status, response.body) == (200, b"hello")
    assert response.headers == (("content-length", "5"), ("x-a", "b"))


@pytest.mark.parametrize("step", [1, 7, 65536])
def test_a_chunked_body_is_put_together(step: int) -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: v\r\n\r\n"
    assert read(data, step=step).body == b"abc0123456789"


def test_a_body_without_a_length_ends_with_the_stream() -> None:
    assert read(b"HTTP/1.0 200\r\n\r\nabc").body == b"abc"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answers_that_have_no_body_are_not_read_further(method: str, status: int) -> None:
    assert read(f"HTTP/1.1 {status} X\r\nContent-Length: 99\r\n\r\n".encode(), method).body == b""


def test_interim_answers_are_passed_over() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    assert read(interim * 5 + b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").status == 201
    assert kind(interim * 6 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == "unavailable"


def test_a_redirect_is_an_answer() -> None:
    response = read(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n")
    assert (response.status, dict(response.headers)["location"]) == (302, "http://169.254.169.254/")


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"\n",
        OK + b"Content-Length : 0\r\n\r\n",
        OK + b" folded: x\r\n\r\n",
        OK + b"A: b\r\n c\r\n\r\n",
        OK + b"novalue\r\n\r\n",
        OK + b": x\r\n\r\n",
        OK + b"A\x00: x\r\n\r\n",
        OK + b"A: x\x00y\r\n\r\n",
        OK + b"Content-Length: 5\r\n\r\nabc",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: +5\r\n\r\nhello",
        OK + b"Content-Length: 5, 5\r\n\r\nhello",
        OK + b"Content-Length: 0x5\r\n\r\nhello",
        OK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: identity\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
    ],
)
def test_an_ambiguous_answer_is_refused(data: bytes) -> None:
    assert kind(data) == "unavailable"


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Content-Length: 1001\r\n\r\n" + b"x" * 1001,
        OK + b"\r\n" + b"x" * 1001,
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"1f4\r\n" + b"x" * 500 + b"\r\n1f5\r\n" + b"x" * 501,
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
        OK + b"A: " + b"x" * 20_000 + b"\r\n\r\n",
        b"x" * 20_000,
        OK + b"".join(b"A%d: x\r\n" % n for n in range(MAX_HEADERS + 1)) + b"\r\n",
        OK + b"".join(b"A: " + b"x" * 10_000 + b"\r\n" for _ in range(8)) + b"\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: x\r\n" * (MAX_HEADERS + 1) + b"\r\n",
    ],
)
def test_a_part_beyond_its_cap_is_not_read(data: bytes) -> None:
    assert kind(data) == "too-large"


def test_an_endless_body_is_read_only_up_to_the_cap() -> None:
    received = 0

    def receive(count: int) -> bytes:
        nonlocal received
        received += count
        return OK + b"\r\n" if received == count else b"x" * count

    with pytest.raises(HostError):
        read_response(receive, "GET", 100_000)
    assert received < 400_000


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n"]),
    st.integers(1, 64),
)
def test_no_bytes_raise_anything_but_a_host_error(tail: bytes, head: bytes, step: int) -> None:
    try:
        response = read(head + tail, step=step)
    except HostError:
        return
    assert len(response.body) <= CAP


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 40))
def test_a_chunked_body_survives_any_cut(body: bytes, sizes: list[int], step: int) -> None:
    chunks, position = b"", 0
    for size in [*sizes, len(body)]:
        piece = body[position : position + size]
        position += size
        if piece:
            chunks += b"%x\r\n%s\r\n" % (len(piece), piece)
    data = OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    assert read(data, step=step).body == body[: sum([*sizes, len(body)])]


def test_a_request_is_written_as_it_is_given() -> None:
    data = encode_request("POST", "/p?q", (("host", "a.test"), ("x", "é")), b"body")
    assert data == "POST /p?q HTTP/1.1\r\nhost: a.test\r\nx: é\r\n\r\n".encode("latin-1") + b"body"


def connect_status(data: bytes, step: int = 65536) -> int:
    return read_connect_answer(stream(data, step))


@pytest.mark.parametrize("step", [1, 7, 65536])
@pytest.mark.parametrize("status", [200, 204, 299, 302, 403, 407, 503])
def test_the_answer_to_connect_is_its_status_and_lengths_mean_nothing(status: int, step: int) -> None:
    answer = f"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 {status} X\r\nContent-Length: 9\r\nTransfer-Encoding: x\r\n\r\n"
    assert connect_status(answer.encode(), step) == status


def test_bytes_behind_the_answer_that_opens_the_tunnel_are_refused() -> None:
    with pytest.raises(HostError) as caught:
        connect_status(b"HTTP/1.1 200 OK\r\n\r\nx")
    assert caught.value.failure.message.startswith("the egress proxy's answer")
    assert connect_status(b"HTTP/1.1 403 No\r\n\r\n<html>") == 403


@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]))
def test_noise_from_a_proxy_opens_no_tunnel(noise: bytes, start: bytes) -> None:
    try:
        status = connect_status(start + noise)
    except HostError:
        return
    assert status >= 300 or (start + noise).endswith(b"\r\n\r\n")
