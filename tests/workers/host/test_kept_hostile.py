"""Upstreams that lie about where an answer ends, speak unasked, or end a connection that a worker keeps.

Each answer belongs to its request, or the call has none."""

import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import pytest

from ipc.plan import Plan
from tests.support.http_host import Client, request
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Answer, certificate, lasting, saying, upstream
from workers.host.connection import LAST_BYTES, make_tls
from workers.host.kept import KeptConnections
from workers.host.meter import HostError

HOST = "upstream.test"
EVIL = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
OK = b"HTTP/1.1 200 OK\r\n"
POST = request(method="POST", body="{}")


@pytest.fixture
def kept() -> Iterator[KeptConnections]:
    made = KeptConnections()
    yield made
    made.close()


def body_of(plan: Plan, kept: KeptConnections, wanted: object = None, **changes: object) -> bytes:
    return Client(plan, kept=kept, **changes).send(wanted or request()).body  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nfirst",
        OK + b"Connection: close\r\nContent-Length: 5\r\n\r\nfirst",
        OK + b"Connection: Keep-Alive, CLOSE\r\nContent-Length: 5\r\n\r\nfirst",
        OK + b"Keep-Alive: timeout=1\r\nContent-Length: 5\r\n\r\nfirst",
        OK + b"Content-Length: 5\r\n\r\nfirst" + EVIL,
        OK + b"Content-Length: 5\r\n\r\nfirst\r\n",
        OK + b"Content-Length: 5\r\n\r\nfirst" + EVIL[:10],
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n" + EVIL,
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nfirst",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 5\r\n\r\nfirst",
        b"HTTP/1.1 204 None\r\nContent-Length: 4\r\n\r\n",
        b"HTTP/1.1 304 Same\r\nContent-Length: 4\r\n\r\n",
    ],
    ids=[
        "HTTP/1.0", "close", "close in a list", "a second", "another answer", "an empty line", "half an answer",
        "an answer behind chunks", "a last chunk twice", "103", "100", "204 with a length", "304",
    ],
)  # fmt: skip
def test_an_answer_that_does_not_end_its_request_for_certain_is_the_last_on_its_connection(
    kept: KeptConnections, first: bytes
) -> None:
    is_first = iter([saying(first)])

    def answer(connection: socket.socket) -> None:
        next(is_first, lasting(b"second"))(connection)

    with upstream(answer, then=repeat(saying(EVIL))) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) in (b"first", b"")
        assert body_of(plan, kept, POST) == b"second"
        assert up.connections == 2


def resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def ends(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)


def says_farewell(connection: socket.socket) -> None:
    """close_notify of TLS, without an end of the stream."""
    assert isinstance(connection, ssl.SSLSocket)
    connection.settimeout(0)
    try:
        connection.unwrap()
    except OSError:
        connection.settimeout(60)


def wait_for_more(kept: KeptConnections) -> None:
    """Wait until something has come on the connection that waits."""
    poll = select.poll()
    poll.register(kept._waiting[-1].stream.fileno(), select.POLLIN)
    assert poll.poll(60_000)


@pytest.mark.parametrize("is_safe", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize(
    "meanwhile",
    [
        saying(EVIL), saying(EVIL[:7]), saying(b"HTTP/1.1 100 Continue\r\n\r\n"),
        saying(b"HTTP/1.1 408 Late\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), ends, resets, says_farewell,
    ],
    ids=["an answer", "part of an answer", "100", "408", "half-close", "reset", "close_notify"],
)  # fmt: skip
def test_a_connection_on_which_anything_came_before_the_request_is_not_used(
    kept: KeptConnections, tmp_path: Path, meanwhile: Answer, is_safe: bool
) -> None:
    if meanwhile is says_farewell and not is_safe:
        meanwhile = ends
    is_first, was_read = iter([b"first"]), threading.Event()

    def answer(connection: socket.socket) -> None:
        body = next(is_first, b"second")
        lasting(body)(connection)
        if body == b"first":
            was_read.wait(60)
            meanwhile(connection)

    path, context = certificate(tmp_path, HOST)
    with upstream(answer, context if is_safe else None, repeat(saying(EVIL))) as up:
        plan, tls = http_plan(address=up.address), make_tls(str(path))
        url = f"{'https' if is_safe else 'http'}://{HOST}/"
        assert body_of(plan, kept, request(url), tls=tls) == b"first"
        was_read.set()
        wait_for_more(kept)
        assert body_of(plan, kept, request(url, method="POST", body="{}"), tls=tls) == b"second"
        assert up.connections == 2


STALE: dict[str, Answer] = {
    "end": ends,
    "reset": resets,
    "408": saying(b"HTTP/1.1 408 Late\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
}


@pytest.mark.parametrize("stale", STALE.values(), ids=STALE)
def test_a_request_that_may_be_repeated_is_sent_again_once_where_a_kept_connection_ended(
    kept: KeptConnections, stale: Answer
) -> None:
    with upstream(lasting(b"good"), then=[stale]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        client = Client(plan, kept=kept)
        assert client.send(request()).body == b"good"
        assert (up.connections, len(up.requests)) == (2, 3)
        assert (client.meter.io_calls, [one.ok for one in client.meter.observations]) == (1, [True])


@pytest.mark.parametrize("stale", [ends, resets], ids=["end", "reset"])
def test_a_request_that_may_not_be_repeated_fails_where_a_kept_connection_ended(
    kept: KeptConnections, stale: Answer
) -> None:
    with upstream(lasting(b"good"), then=[stale]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        client = Client(plan, kept=kept)
        assert client.refused(POST)[0] == "unavailable"
        assert (up.connections, len(up.requests)) == (1, 2)
        assert (client.meter.io_calls, len(client.meter.observations)) == (1, 1)


def test_a_request_is_not_sent_a_third_time(kept: KeptConnections) -> None:
    answers = iter([lasting(b"good")])

    def answer(connection: socket.socket) -> None:
        next(answers, ends)(connection)

    with upstream(answer, then=[ends]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        assert Client(plan, kept=kept).refused(request())[0] == "unavailable"
        assert (up.connections, len(up.requests)) == (2, 3)


SECOND: dict[str, tuple[Answer, str]] = {
    "half a head": (saying(b"HTTP/1.1 200 OK\r\nContent-Le"), "unavailable"),
    "half a body": (saying(OK + b"Content-Length: 9\r\n\r\nhalf"), "unavailable"),
    "a storm of 1xx": (saying(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000), "unavailable"),
    "101": (saying(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), "unavailable"),
    "two lengths": (saying(OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), "unavailable"),
    "too large": (saying(OK + b"Content-Length: 999999999\r\n\r\n"), "too-large"),
}


@pytest.mark.parametrize(("second", "kind"), SECOND.values(), ids=SECOND)
def test_a_bad_answer_on_a_kept_connection_is_the_requests_own_and_ends_it(
    kept: KeptConnections, second: Answer, kind: str
) -> None:
    def then_ends(connection: socket.socket) -> None:
        second(connection)
        connection.shutdown(socket.SHUT_WR)

    with upstream(lasting(b"good"), then=[then_ends]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        assert Client(plan, kept=kept).refused(request())[0] == kind
        assert (up.connections, len(up.requests)) == (1, 2)
        assert body_of(plan, kept) == b"good"
        assert up.connections == 2


def test_a_kept_connection_that_says_nothing_ends_at_the_deadline(kept: KeptConnections) -> None:
    with upstream(lasting(b"good"), then=[lambda connection: None, lasting(EVIL)]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        assert Client(plan, kept=kept, seconds=0.5).refused(request())[0] == "timeout"
        assert body_of(plan, kept) == b"good"
        assert up.connections == 2


def test_an_upstream_that_answers_before_it_is_asked_is_not_believed(kept: KeptConnections) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plan = http_plan(address=f"127.0.0.1:{listener.getsockname()[1]}")
        exchange = Client(plan, kept=kept)
        way = exchange.host._way

        def answered_way(*arguments: object) -> object:
            stream = way(*arguments)  # type: ignore[arg-type]
            connection, _ = listener.accept()
            with connection:
                connection.sendall(EVIL)
                poll = select.poll()
                poll.register(stream.fileno(), select.POLLIN)
                assert poll.poll(60_000)
            return stream

        exchange.host._way = answered_way  # type: ignore[assignment]
        kind, message = exchange.refused(request())
    assert (kind, message) == ("unavailable", "the upstream answered or hung up before it was asked")


def test_an_answer_to_half_a_request_is_the_last_on_its_connection(kept: KeptConnections) -> None:
    size = 128 * LAST_BYTES  # more than the kernel takes while nothing is read

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(OK + b"Content-Length: 5\r\n\r\nearly")
            while connection.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LAST_BYTES)
        plan = http_plan(address=f"127.0.0.1:{listener.getsockname()[1]}")
        serving = threading.Thread(target=serve)
        serving.start()
        answer = Client(plan, kept=kept).send(request(method="POST", body="x" * size))
        assert answer.body == b"early"
        assert not kept._waiting
        serving.join(60)


def test_the_error_of_a_repeated_request_says_that_the_first_may_have_been_carried_out(kept: KeptConnections) -> None:
    first = iter([lasting(b"good")])
    with upstream(lambda connection: next(first, ends)(connection), then=[resets]) as up:
        plan = http_plan(address=up.address)
        assert body_of(plan, kept) == b"good"
        client = Client(plan, kept=kept)
        kind, message = client.refused(request())
        assert len(up.requests) == 3
    assert (kind, message.rpartition("; ")[2]) == (
        "unavailable", "it was asked before over a connection that ended, and may have done it"
    )  # fmt: skip
    (seen,) = client.meter.observations
    assert seen.error == f"{kind}: {message}"


def test_an_error_of_a_kept_connection_says_no_more_than_that_of_a_new_one(kept: KeptConnections) -> None:
    with upstream(lasting(b"good"), then=[resets]) as up:
        plan = http_plan(address=up.address)
        body_of(plan, kept)
        with pytest.raises(HostError) as caught:
            Client(plan, kept=kept).send(POST)
    assert up.address not in caught.value.failure.message
    assert not caught.value.failure.retryable
