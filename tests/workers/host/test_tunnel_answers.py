"""The http host call through a proxy: what it makes of the proxy's answer.

A refusal, an answer that is too large, too slow, broken or missing, and one that would pass for the upstream's.
"""

import select
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.support.http_host import AT_ONCE, Client, request
from tests.support.worker_proxy import ESTABLISHED, letting_through, proxied_plan
from tests.support.worker_upstream import Answer, dripping, ok, saying, upstream
from workers.host.meter import HostError
from workers.host.network import ProxyLimits

TRIES = 1 + len(ProxyLimits().pauses_seconds)


def head(status: str, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: 0\r\n%s\r\n" % (status.encode(), more)


REFUSED = "the egress proxy refused the upstream"


@pytest.mark.parametrize(
    ("status", "kind", "message", "is_retryable"),
    [
        ("403 Forbidden", "denied", REFUSED, False),
        ("400 Bad Request", "denied", REFUSED, False),
        ("404 Not Found", "denied", REFUSED, False),
        ("405 Method Not Allowed", "denied", REFUSED, False),
        ("302 Found", "denied", REFUSED, False),
        ("407 Who", "denied", "the egress proxy wants credentials", False),
        ("500 Oh", "unavailable", "the egress proxy could not reach the upstream", True),
        ("502 Bad Gateway", "unavailable", "the egress proxy could not reach the upstream", True),
        ("503 Service Unavailable", "unavailable", "the egress proxy could not reach the upstream", True),
    ],
)
def test_a_proxy_that_does_not_let_through_says_why(status: str, kind: str, message: str, is_retryable: bool) -> None:
    with upstream(saying(head(status, b"Location: http://upstream.test/again\r\n"))) as proxy:
        client = Client(proxied_plan(proxy.address))
        with pytest.raises(HostError) as caught:
            client.send(request())
        assert len(proxy.requests) == 1, "the proxy was asked again"
    failure = caught.value.failure
    assert (failure.kind, failure.message, failure.retryable) == (kind, message, is_retryable)
    assert client.meter.observations[0].error == f"{kind}: {message}"


LETS_THROUGH = [
    b"HTTP/1.1 200 Connection established\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
]


@pytest.mark.parametrize("answer", LETS_THROUGH, ids=["squid", "old", "204", "with lengths", "interim"])
def test_a_2xx_opens_the_tunnel_with_any_headers(answer: bytes) -> None:
    with upstream(ok(b"through")) as up, upstream(letting_through(up.address, answer)) as proxy:
        assert Client(proxied_plan(proxy.address)).send(request()).body == b"through"


def refused_after(
    answer: Answer, seconds: float = 300, timeout_ms: int | None = None, limits: ProxyLimits = AT_ONCE
) -> tuple[str, str, list[bytes]]:
    """(kind, message, what the proxy was sent) of a request that must not get through."""
    with upstream(answer) as proxy:
        client = Client(proxied_plan(proxy.address), seconds=seconds, proxy_limits=limits)
        kind, message = client.refused(request(timeout_ms=timeout_ms))
        address = proxy.address
    assert "proxy" in message
    assert address not in message
    return kind, message, proxy.requests


INJECTED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20,
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
        b"HTTP/1.1 200 OK\r\nHTTP/1.1 403 Forbidden\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 9,
        ESTABLISHED + INJECTED,
        ESTABLISHED + b"x",
        b"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" + INJECTED,
        b"HTTP/1.1 200 OK\r\nContent-Le",
    ],
    ids=[
        "another protocol", "TLS", "another version", "line feeds", "two status lines", "folded", "101",
        "endless interim", "an answer behind it", "a byte behind it", "a body", "half a head",
    ],
)  # fmt: skip
def test_an_answer_that_opens_no_tunnel_is_never_taken_for_one(answer: bytes) -> None:
    kind, message, requests = refused_after(saying(answer))
    assert kind == "unavailable"
    assert message.startswith("the egress proxy's answer is not HTTP/1.1 as it should be")
    assert [one.split(b" ")[0] for one in requests] == [b"CONNECT"], "nothing else was sent, and nothing again"


@pytest.mark.parametrize("behind", [INJECTED, b"x"], ids=["an answer", "a byte"])
def test_bytes_behind_the_proxys_head_are_not_the_upstreams(behind: bytes) -> None:
    limits = ProxyLimits(read_bytes=len(ESTABLISHED))  # the head is taken, and the rest is still on its way
    kind, message, requests = refused_after(saying(ESTABLISHED + behind), limits=limits)
    assert (kind, message) == ("unavailable", "the egress proxy sends something behind its answer")
    assert [one.split(b" ")[0] for one in requests] == [b"CONNECT"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 " + b"x" * 200_000,
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000,
    ],
    ids=["status line", "header", "headers"],
)
def test_a_head_beyond_its_caps_is_too_large(answer: bytes) -> None:
    kind, message, _ = refused_after(saying(answer))
    assert (kind, message.partition(":")[0]) == ("too-large", "the egress proxy's answer is too large")


def test_a_proxy_that_hangs_up_without_a_word_is_asked_a_few_times_and_sent_nothing_else() -> None:
    kind, message, requests = refused_after(saying(b""))
    assert (kind, message) == ("unavailable", "the egress proxy hung up without an answer")
    assert [one.split(b" ")[0] for one in requests] == [b"CONNECT"] * TRIES


def test_a_proxy_that_hangs_up_once_as_one_does_that_reads_its_configuration_costs_nothing() -> None:
    answers: list[Answer] = [saying(b"")] * (TRIES - 1)
    with upstream(ok(b"through")) as up:
        through = letting_through(up.address)
        with upstream(lambda connection: (answers.pop() if answers else through)(connection)) as proxy:
            client = Client(proxied_plan(proxy.address))
            assert client.send(request(method="POST", body="once")).body == b"through"
        assert len(up.requests) == 1
    assert (client.meter.io_calls, len(client.meter.observations)) == (1, 1)


def test_nothing_is_tried_again_when_no_time_is_left_for_it() -> None:
    _, message, requests = refused_after(saying(b""), limits=ProxyLimits(pauses_seconds=(1000.0,)))
    assert message == "the egress proxy hung up without an answer"
    assert len(requests) == 1


DRIPPING = dripping(b"HTTP/1.1 200 OK\r\nX: ")


def silent(connection: socket.socket) -> None:
    """Send nothing until the other side closes the connection; then send the answer that opens the tunnel."""
    connection.settimeout(None)
    connection.recv(1)
    connection.sendall(ESTABLISHED)


@pytest.mark.parametrize("answer", [DRIPPING, silent], ids=["slow", "too late"])
@pytest.mark.parametrize(("seconds", "timeout_ms"), [(0.3, None), (3600, 300)])
def test_a_slow_proxy_ends_at_the_deadline(
    answer: Callable[[socket.socket], None], seconds: float, timeout_ms: int | None
) -> None:
    kind, message, requests = refused_after(answer, seconds, timeout_ms)
    assert (kind, message) == ("timeout", "the egress proxy did not answer in time")
    assert len(requests) <= 1


def test_an_answer_before_the_question_opens_no_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted: list[socket.socket] = []
    real = socket.socket.connect

    def connect(stream: socket.socket, address: tuple[str, int]) -> None:
        real(stream, address)
        accepted.append(listener.accept()[0])
        accepted[0].sendall(ESTABLISHED)
        assert select.select([stream], [], [], 60)[0]

    monkeypatch.setattr(socket.socket, "connect", connect)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = Client(proxied_plan(f"127.0.0.1:{listener.getsockname()[1]}"))
        assert client.refused(request()) == ("unavailable", "the egress proxy answered before it was asked")
    assert len(accepted) == 1
    with accepted[0] as proxy, suppress(ConnectionResetError):
        assert proxy.recv(1) == b"", "it was asked all the same"
