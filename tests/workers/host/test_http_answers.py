"""The http host call against real servers: what it makes of the answer.

A redirect, an answer that is too large, too slow, broken or missing, and one that comes from another server than
the one of the name that was asked.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.http_host import Client, asked, failing, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Answer, Upstream, certificate, dripping, ok, saying, upstream
from workers.host.connection import make_tls
from workers.host.meter import HostError


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_returned_and_not_followed(status: str) -> None:
    response, up, _ = asked(ok(b"", status, b"Location: http://upstream.test/again\r\n"), request())
    assert response.status == int(status[:3])
    assert len(up.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        saying(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2_000_000),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"),
        saying(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000),
        saying(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000),
    ],
    ids=["endless body", "announced body", "endless header", "many headers"],
)
def test_an_answer_beyond_its_caps_is_too_large(answer: Answer) -> None:
    assert failing(answer, max_response_bytes=100_000)[0] == "too-large"


@pytest.mark.parametrize(
    "answer",
    [
        saying(b""), saying(b"SSH-2.0-OpenSSH\r\n"), saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"),
        saying(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_whole_http_is_unavailable(answer: Answer) -> None:
    assert failing(answer)[0] == "unavailable"


DRIPPING = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")


def silent(connection: socket.socket) -> None:
    """Send nothing until the other side closes the connection."""
    connection.settimeout(None)
    connection.recv(1)


@pytest.mark.parametrize("answer", [DRIPPING, silent], ids=["slow", "silent"])
@pytest.mark.parametrize(("seconds", "timeout_ms"), [(0.3, None), (3600, 300)])
def test_a_slow_upstream_ends_at_the_deadline(
    answer: Callable[[socket.socket], None], seconds: float, timeout_ms: int | None
) -> None:
    kind, _ = failing(answer, request(timeout_ms=timeout_ms), seconds=seconds)
    assert kind == "timeout"


def test_an_upstream_that_is_not_there_is_unavailable_and_worth_another_try() -> None:
    with socket.socket() as taken:  # bound: no other program can take it meanwhile
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HostError) as caught:
            Client(http_plan(address=address)).send(request())
    assert (caught.value.failure.kind, caught.value.failure.retryable) == ("unavailable", True)
    assert address not in caught.value.failure.message


def tls_client(up: Upstream, trusted: Path, name: str = "upstream.test") -> Client:
    context = make_tls()
    context.load_verify_locations(trusted)
    return Client(http_plan(url_host=name, address=up.address), tls=context)


def test_tls_is_verified_against_the_name(tmp_path: Path) -> None:
    path, context = certificate(tmp_path, "upstream.test")
    with upstream(ok(b"safe"), context) as up:
        assert tls_client(up, path).send(request("https://upstream.test/")).body == b"safe"


def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    path, context = certificate(tmp_path, "other.test")
    with upstream(ok(), context) as up:
        kind, message = tls_client(up, path).refused(request("https://upstream.test/"))
        assert (kind, up.requests) == ("unavailable", [])
        assert "certificate" in message


def test_an_untrusted_certificate_is_refused(tmp_path: Path) -> None:
    _, context = certificate(tmp_path, "upstream.test")
    with upstream(ok(), context) as up:
        assert Client(http_plan(address=up.address)).refused(request("https://upstream.test/"))[0] == "unavailable"
        assert up.requests == []


def test_plain_text_where_tls_was_asked_for_is_refused() -> None:
    assert failing(ok(), request("https://upstream.test/"), seconds=0.5)[0] in ("unavailable", "timeout")


def test_a_body_cut_off_under_tls_does_not_pass_for_a_whole_one(tmp_path: Path) -> None:
    path, context = certificate(tmp_path, "upstream.test")

    def cut(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        with socket.socket(fileno=os.dup(connection.fileno())) as raw:
            raw.shutdown(socket.SHUT_RDWR)

    with upstream(cut, context) as up:
        assert tls_client(up, path).refused(request("https://upstream.test/"))[0] == "unavailable"
