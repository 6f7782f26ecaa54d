"""Bounds of connections, heads, bodies and answers beside a gateway, over real sockets, and the end by a signal."""

import signal
import socket

import pytest
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from serving.application import MAX_SWALLOWED
from serving.server import MAX_HEAD
from tests.support.http_socket import DEADLINE, Client, connected, echo, get, request, until
from tests.support.logs import capture_logs
from tests.support.served_requests import PATIENT, Address, served

MOMENT = 0.2
CHUNKED = "Transfer-Encoding: chunked"
WEBSOCKET = get(
    "/", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)  # fmt: skip
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0" + b"\0\0\6\1\5\0\0\0\1\x82\x84\x86\x41\1a"
"""Preface, settings, and a whole request."""


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection may be closed as soon as it is idle."""
    monkeypatch.setattr("serving.connections.MIN_IDLE_SECONDS", 0.0)


async def is_over(client: Client) -> bool:
    """Wait until the connection ends without an answer."""
    return await client.rest() == b""


async def test_a_request_is_answered_as_it_was_sent() -> None:
    async with served(echo) as address, connected(address) as client:
        for _ in range(2):
            reply = await client.ask(request("POST", "/v1/%2e?y=z", b"hello", "DPoP: a", "dpop: b"))
            assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
            assert reply.json == {
                "method": "POST", "path": "/v1/%2e", "query": "y=z", "listener": "test", "peer": None, "body": "hello",
                "headers": [["host", "gateway"], ["dpop", "a"], ["dpop", "b"], ["content-length", "5"]],
            }  # fmt: skip


async def test_a_head_that_does_not_end_is_cut() -> None:
    async with served(echo, PATIENT._replace(head_seconds=MOMENT)) as address, connected(address) as client:
        await client.send(get()[:-2])
        assert await is_over(client)


async def test_a_connection_without_a_next_request_is_closed() -> None:
    async with served(echo, PATIENT._replace(head_seconds=1.0)) as address, connected(address) as client:
        assert (await client.ask(get())).status == 200
        assert await is_over(client)


async def test_a_body_that_does_not_end_is_refused() -> None:
    async with served(echo, PATIENT._replace(body_seconds=MOMENT)) as address, connected(address) as client:
        reply = await client.ask(request("POST", "/", b"12345")[:-1])
        assert (reply.status, reply.json, reply.headers["connection"]) == (408, {"error": "request_timeout"}, "close")
        assert await is_over(client)


@pytest.mark.parametrize("size", [PATIENT.max_body + 1, MAX_SWALLOWED])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_body_that_is_too_large_is_refused(size: int, is_chunked: bool) -> None:
    data = b"POST / HTTP/1.1\r\nHost: a\r\n"
    if is_chunked:
        data += b"%b\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (CHUNKED.encode(), size, b"x" * size)
    else:
        data += b"Content-Length: %d\r\n\r\n%b" % (size, b"x" * size)
    async with served(echo) as address, connected(address) as client:
        reply = await client.ask(data)
        assert (reply.status, reply.json) == (413, {"error": "body_too_large"})


@pytest.mark.parametrize("headers", [[f"A{number}: b" for number in range(101)], ["A: " + "b" * 2 * MAX_HEAD] * 2])
async def test_a_head_that_is_too_large_is_refused(headers: list[str]) -> None:
    async with served(echo) as address, connected(address) as client:
        assert (await client.ask(get("/", *headers))).status == 431


POST = b"POST /ok HTTP/1.1\r\nHost: x\r\n"
SMUGGLED = b"0\r\n\r\n" + get("/smuggled")


@pytest.mark.parametrize(
    "data",
    [
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" + SMUGGLED,
        POST + b"A: \x01\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
        b"POST http://x/ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + SMUGGLED,
        POST + b"Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
        POST + b"Transfer-Encoding: identity, chunked\r\n\r\n" + SMUGGLED,
    ],
)
async def test_a_head_that_a_proxy_could_read_in_another_way_ends_its_connection(data: bytes) -> None:
    asked: list[Request] = []

    async def respond(request: Request) -> Answer:
        asked.append(request)
        return Answer(200)

    async with served(respond) as address, connected(address) as client:
        assert (await client.ask(data)).status in {400, 501}
        assert await is_over(client)
    assert asked == []


@pytest.mark.parametrize("data", [WEBSOCKET, HTTP_2], ids=["websocket", "http-2"])
async def test_nothing_but_http_1_is_answered(data: bytes) -> None:
    asked: list[Request] = []

    async def respond(request: Request) -> Answer:
        asked.append(request)
        return Answer(200)

    async with served(respond) as address, connected(address) as client:
        await client.send(data)
        assert b"HTTP/1.1 200" not in await client.rest()
    assert asked == []


@pytest.mark.parametrize(
    "data",
    [
        HTTP_2[:33],
        HTTP_2[:33] + b"\0\0\x08\6\0\0\0\0\0" + b"12345678",
        get("/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"),
    ],
    ids=["preface", "ping", "upgrade"],
)
async def test_a_connection_that_speaks_http_2_ends_without_a_request(data: bytes) -> None:
    async with served(echo) as address, connected(address) as client:
        await client.send(data)
        with trio.fail_after(DEADLINE):
            assert b"HTTP/1.1 200" not in await client.rest()


async def test_a_client_that_does_not_take_its_answer_is_cut() -> None:
    async def large(_request: Request) -> Answer:
        return Answer(200, b"x" * 16_000_000)

    with capture_logs() as logs:
        async with served(large, PATIENT._replace(send_seconds=MOMENT)) as address, connected(address) as client:
            client.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await client.send(get())
            await until(lambda: any("does not take the answer" in line["event"] for line in logs))
            assert len(await client.rest()) < 16_000_000


async def test_of_more_bytes_than_may_wait_the_longest_wait_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of another client that reads is whole."""
    size = 16_000_000
    monkeypatch.setattr("serving.connections.MAX_UNSENT", size)
    asked: list[Request] = []

    async def large(request: Request) -> Answer:
        asked.append(request)
        return Answer(200, b"x" * size)

    async with served(large) as address, connected(address) as slow, connected(address) as other:
        await slow.send(get())
        await until(lambda: len(asked) == 1)
        await other.send(get())
        assert len((await other.reply()).body) == size
        assert len(await slow.rest()) < size


async def test_at_the_bound_the_connection_that_has_been_idle_longest_makes_room(no_patience: None) -> None:
    async with (
        served(echo, PATIENT._replace(max_connections=2)) as address,
        connected(address) as first,
        connected(address) as second,
        connected(address) as third,
    ):
        for client in (second, third):
            assert (await client.ask(get())).status == 200
        assert await is_over(first)


async def test_no_connection_with_a_request_makes_room(no_patience: None) -> None:
    waits = trio.Event()
    asked: list[str] = []

    async def respond(request: Request) -> Answer:
        asked.append(request.path)
        await waits.wait()
        return json_answer(200, {})

    async with served(respond, PATIENT._replace(max_connections=1)) as address, connected(address) as first:
        await first.send(get("/first"))
        await until(lambda: asked == ["/first"])
        async with connected(address) as second:
            assert await is_over(second)
        waits.set()
        assert (await first.reply()).status == 200


async def test_a_client_that_leaves_without_a_request_makes_room_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving.connections.MIN_IDLE_SECONDS", 600.0)
    async with served(echo, PATIENT._replace(max_connections=1)) as address:
        async with connected(address):
            pass
        with trio.fail_after(DEADLINE):
            while not await is_answered(address):  # noqa: ASYNC110 (the end of a connection has no event)
                await trio.sleep(0.01)


async def is_answered(address: Address) -> bool:
    """Whether there is room for another connection."""
    async with connected(address) as client:
        try:
            return (await client.ask(get())).status == 200
        except (EOFError, trio.BrokenResourceError):
            return False


async def test_a_client_that_leaves_does_not_end_what_it_asked_for() -> None:
    waits = trio.Event()
    done: list[str] = []

    async def respond(request: Request) -> Answer:
        done.append("begun")
        await waits.wait()
        done.append("ended")
        return Answer(200)

    async with served(respond) as address:
        async with connected(address) as client:
            await client.send(get())
            await until(lambda: done == ["begun"])
        async with connected(address) as other:
            await other.send(get())
            await until(lambda: len(done) == 2)
        waits.set()
        await until(lambda: done.count("ended") == 2)


async def test_a_handler_that_fails_is_answered_and_logged_with_its_trace() -> None:
    async def respond(_request: Request) -> Answer:
        raise ValueError("broken")

    with capture_logs() as logs:
        async with served(respond) as address, connected(address) as client:
            reply = await client.ask(get("/v1/x"))
            assert (reply.status, reply.json) == (500, {"error": "internal_error"})
            assert (await client.ask(get())).status == 500
    (line, _) = [line for line in logs if line["event"] == "a handler failed"]
    assert line["path"] == "/v1/x"


async def test_a_signal_ends_it_once_the_answer_under_way_is_out() -> None:
    waits = trio.Event()
    asked: list[Request] = []

    async def respond(request: Request) -> Answer:
        asked.append(request)
        await waits.wait()
        return json_answer(200, {})

    with capture_logs() as logs:
        async with served(respond) as address, connected(address) as client, connected(address) as idle:
            assert idle is not None
            await client.send(get())
            await until(lambda: len(asked) == 1)
            signal.raise_signal(signal.SIGTERM)
            assert await is_over(idle)
            waits.set()
            assert (await client.reply()).status == 200
            assert await is_over(client)
            await until(lambda: any(line["event"] == "stopped" for line in logs))
