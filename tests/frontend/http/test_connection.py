"""One connection, over real sockets: order, keep-alive, bodies, deadlines, and who may cut what."""

import os

import pytest
import trio

from frontend.errors import GateError
from frontend.http.answers import Answer, json_answer
from frontend.http.requests import MAX_BODY_BYTES, Request
from frontend.http.wire import Wire
from tests.support.http_socket import Client, Serving, get, request, until
from tests.support.logs import capture_logs

CHUNKED = "Transfer-Encoding: chunked"


async def without_reading(_request: Request) -> Answer:
    return json_answer(404, {"error": "not_found"})


async def test_a_handler_sees_what_was_sent(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        reply = await client.ask(request("POST", "/v1/x?y=z", b"hello", "DPoP: a", "dpop: b"))
        assert reply.status == 200
        assert reply.json == {
            "method": "POST", "path": "/v1/x", "query": "y=z", "listener": "merged", "peer": None, "body": "hello",
            "headers": [["host", "gateway"], ["dpop", "a"], ["dpop", "b"], ["content-length", "5"]],
        }  # fmt: skip


async def test_a_unix_socket_brings_the_peer_s_credentials(serving: Serving) -> None:
    async with serving() as running, running.client(unix=True) as client:
        seen = (await client.ask(get("/"))).json
        assert seen["listener"] == "client"
        assert seen["peer"] == [os.getpid(), os.getuid(), os.getgid()]


async def test_pipelined_requests_are_answered_in_order(serving: Serving) -> None:
    async def slow_first(request: Request) -> Answer:
        if request.path == "/0":
            await trio.sleep(0.05)
        return json_answer(200, {"path": request.path, "body": (await request.read_body()).decode()})

    pipeline = b"".join(
        request("POST", f"/{number}", f"body {number}".encode()) if number % 2 else get(f"/{number}")
        for number in range(9)
    )
    async with serving(slow_first) as running, running.client() as client:
        await client.send(pipeline)
        assert [(await client.reply()).json["path"] for _ in range(9)] == [f"/{number}" for number in range(9)]


async def test_what_is_put_off_happens_once_the_answer_was_sent_and_before_the_next_request(serving: Serving) -> None:
    order: list[str] = []
    sent = Wire.send_now

    def noted(wire: Wire, data: bytes) -> int:
        order.append("sent")
        return sent(wire, data)

    async def respond(request: Request) -> Answer:
        order.append(f"asked {request.path}")
        request.after_answer(lambda: order.append(f"told {request.path}"))
        return json_answer(200, {})

    async with serving(respond) as running, running.client() as client:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Wire, "send_now", noted)
            await client.send(get("/0") + get("/1"))
            assert [(await client.reply()).status for _ in range(2)] == [200, 200]
            await until(lambda: len(order) == 6)
    assert order == ["asked /0", "sent", "told /0", "asked /1", "sent", "told /1"]


async def test_what_is_put_off_happens_though_the_handler_fails_or_is_cut(serving: Serving) -> None:
    told: list[str] = []
    waits = trio.Event()

    async def respond(request: Request) -> Answer:
        request.after_answer(lambda: told.append(request.path))
        if request.path == "/fails":
            raise ValueError("a fault")
        waits.set()
        await trio.sleep_forever()
        raise AssertionError

    async with serving(respond) as running, running.client() as client:
        with capture_logs():
            assert (await client.ask(get("/fails"))).status == 500
            await client.send(get("/is-cut"))
            await until(waits.is_set)
            assert told == ["/fails"]
    assert told == ["/fails", "/is-cut"]


def test_nothing_is_put_off_where_no_connection_sends_an_answer() -> None:
    told: list[int] = []
    Request("GET", "/").after_answer(lambda: told.append(1))
    assert told == [1]


async def test_head_gets_the_same_head_and_no_body(serving: Serving) -> None:
    async with serving(without_reading) as running, running.client() as client:
        whole = await client.ask(get("/x"))
        head = await client.ask(get("/x").replace(b"GET", b"HEAD"))
        assert head.body == b""
        assert {**head.headers, "date": ""} == {**whole.headers, "date": ""}
        assert (await client.ask(get("/x"))).status == 404


async def test_a_body_is_awaited_byte_by_byte(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        for data in (request("POST", "/", b"hello"), b"POST / HTTP/1.1\r\nHost: x\r\n" + CHUNKED.encode() + b"\r\n\r\n"
                     b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: r\r\n\r\n"):  # fmt: skip
            for byte in data:
                await client.send(bytes([byte]))
            assert (await client.reply()).json["body"] == "hello"


async def test_100_continue_is_sent_only_when_the_body_is_wanted(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        await client.send(request("POST", "/", b"hello", "Expect: 100-continue")[:-5])
        with trio.fail_after(60):
            assert await client.stream.receive_some() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"hello")
        assert (await client.reply()).json["body"] == "hello"
    async with serving(without_reading) as running, running.client() as client:
        reply = await client.ask(request("POST", "/", b"hello", "Expect: 100-continue")[:-5])
        assert (reply.status, reply.headers["connection"]) == (404, "close")


async def test_a_body_too_large_by_its_own_announcement_is_refused_unread(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        reply = await client.ask(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1)
        )
        assert (reply.status, reply.json, reply.headers["connection"]) == (413, {"error": "body_too_large"}, "close")
        assert await client.rest() == b""


async def test_the_largest_body_is_read_whole(serving: Serving) -> None:
    async def length(request: Request) -> Answer:
        return json_answer(200, len(await request.read_body()))

    async with serving(length) as running, running.client() as client:
        assert (await client.ask(request("POST", "/", b"x" * MAX_BODY_BYTES))).json == MAX_BODY_BYTES
        chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        start = request("POST", "/", b"", CHUNKED)
        assert (await client.ask(start + chunk * 16 + b"0\r\n\r\n")).json == MAX_BODY_BYTES
        await client.send(start + chunk * 16 + b"1\r\nx")
        assert (await client.reply()).status == 413


async def test_a_body_too_large_is_refused_while_it_comes_and_the_answer_is_seen(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        await client.send(request("POST", "/", b"", CHUNKED))
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                try:
                    while True:
                        await client.stream.send_all(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
                except trio.BrokenResourceError:
                    return

            nursery.start_soon(flood)
            assert (await client.reply()).status == 413
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("cap", [4, MAX_BODY_BYTES])
async def test_a_body_may_be_read_again_under_each_cap(serving: Serving, cap: int) -> None:
    async def twice(request: Request) -> Answer:
        first = await request.read_body(MAX_BODY_BYTES)
        return json_answer(200, (first + await request.read_body(cap)).decode())

    async with serving(twice) as running:
        for data in (request("POST", "/", b"hello"), request("POST", "/", b"", CHUNKED) + b"5\r\nhello\r\n0\r\n\r\n"):
            async with running.client() as client:
                reply = await client.ask(data)
                assert reply.json == ("hellohello" if cap > 5 else {"error": "body_too_large"})


async def test_an_unread_small_body_is_skipped_and_the_connection_goes_on(serving: Serving) -> None:
    async with serving(without_reading) as running, running.client() as client:
        assert (await client.ask(request("POST", "/", b"GET /evil HTTP/1.1\r\n\r\n"))).status == 404
        assert (await client.ask(request("POST", "/", b"x" * 60_000)[:-10])).status == 404
        await client.send(b"x" * 10)
        assert (await client.ask(get("/"))).headers.get("connection") is None


@pytest.mark.parametrize(
    "data",
    [
        request("POST", "/", b"x" * 200_000),
        request("POST", "/", b"", CHUNKED) + b"5\r\nhello\r\n0\r\n\r\n" + get("/next"),
        request("POST", "/", b"x" * 10, "Connection: close"),
        b"GET / HTTP/1.0\r\n\r\n",
    ],
)
async def test_where_the_next_request_begins_must_be_certain_or_the_connection_ends(
    serving: Serving, data: bytes
) -> None:
    async with serving(without_reading) as running, running.client() as client:
        assert (await client.ask(data)).headers["connection"] == "close"
        assert await client.rest() == b""


async def test_a_client_that_ended_its_side_is_still_answered(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        await client.send(request("POST", "/", b"hello"))
        await client.stream.send_eof()
        assert (await client.reply()).json["body"] == "hello"
        assert await client.rest() == b""


async def test_a_client_that_ends_its_side_inside_a_body_gets_an_answer(serving: Serving) -> None:
    async with serving() as running, running.client() as client:
        await client.send(request("POST", "/", b"hello")[:-1])
        await client.stream.send_eof()
        assert (await client.reply()).json["error"] == "bad_request"


async def test_a_head_that_trickles_is_not_given_more_time_for_each_byte(serving: Serving) -> None:
    async def trickle(client: Client) -> None:
        await client.send(get("/", "A: b")[:-4])
        while True:  # until the server closes the connection
            try:
                await client.send(b"b")
            except trio.BrokenResourceError:
                return
            await trio.sleep(0.01)

    async with serving(header_timeout_seconds=0.2) as running, running.client() as client, trio.open_nursery() as tasks:
        tasks.start_soon(trickle, client)
        assert (await client.reply()).status == 408
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "start", [request("POST", "/", b"hello")[:-1], request("POST", "/", b"", CHUNKED) + b"5\r\nhe"]
)
async def test_a_slow_body_ends_with_408(serving: Serving, start: bytes) -> None:
    async with serving(body_timeout_seconds=0.1) as running, running.client() as client:
        assert (await client.ask(start)).json == {"error": "request_timeout"}
        assert await client.rest() == b""


async def test_an_idle_connection_is_closed_without_a_word(serving: Serving) -> None:
    async with serving(idle_timeout_seconds=0.3) as running, running.client() as client:
        assert (await client.ask(get("/"))).status == 200
        assert await client.rest() == b""


async def test_a_client_that_does_not_read_is_dropped(serving: Serving) -> None:
    asked = 0

    async def large(_request: Request) -> Answer:
        nonlocal asked
        asked += 1
        return Answer(200, b"x" * 50_000_000)

    async with serving(large, send_timeout_seconds=0.2) as running:
        for number, unix in enumerate((False, True), 1):
            async with running.client(unix=unix) as client:
                await client.send(get("/"))
                await until(lambda number=number: asked == number)  # type: ignore[misc]
                await until(lambda: running.server.connections == 0)


async def test_a_large_answer_reaches_a_client_that_reads_slowly(serving: Serving) -> None:
    async def large(_request: Request) -> Answer:
        return Answer(200, b"x" * 20_000_000)

    async with serving(large) as running, running.client() as client:
        await client.send(get("/"))
        await trio.sleep(0.05)
        assert len((await client.reply()).body) == 20_000_000
        assert (await client.ask(get("/"))).status == 200


async def test_a_client_that_leaves_does_not_cancel_what_it_started(serving: Serving) -> None:
    started, gone, finished = trio.Event(), trio.Event(), trio.Event()

    async def work(request: Request) -> Answer:
        await request.read_body()
        started.set()
        await gone.wait()
        await trio.sleep(0.05)
        finished.set()
        return json_answer(200, {})

    async with serving(work) as running:
        async with running.client() as client:
            await client.send(request("POST", "/", b"hello"))
            await started.wait()
        gone.set()
        with trio.fail_after(60):
            await finished.wait()
        await until(lambda: running.server.connections == 0)


async def test_a_handler_that_fails_gives_500_and_a_log_line_and_the_connection_goes_on(serving: Serving) -> None:
    async def broken(request: Request) -> Answer:
        if request.path == "/group":
            async with trio.open_nursery():
                raise OSError(2, "No such file", "/var/lib/gateway/secret")
        raise OSError(2, "No such file", "/var/lib/gateway/secret")

    with capture_logs() as logs:
        async with serving(broken) as running, running.client() as client:
            for path in ("/", "/group"):
                reply = await client.ask(get(path))
                assert (reply.status, reply.body) == (500, b'{"error":"internal_error"}')
    assert [(line["log_level"], line["path"]) for line in logs] == [("error", "/"), ("error", "/group")]
    assert all(line["exc_info"] for line in logs)


async def test_an_error_of_the_table_that_a_handler_raises_becomes_its_answer(serving: Serving) -> None:
    async def denied(_request: Request) -> Answer:
        raise GateError("policy_denied", deny_reason="no")

    async with serving(denied) as running, running.client() as client:
        reply = await client.ask(get("/"))
        assert (reply.status, reply.json) == (403, {"error": "policy_denied", "deny_reason": "no"})


async def test_an_answer_that_cannot_be_written_becomes_500(serving: Serving) -> None:
    async def split(_request: Request) -> Answer:
        return json_answer(200, {}, (("X-Reason", "a\r\nSet-Cookie: b"),))

    with capture_logs() as logs:
        async with serving(split) as running, running.client() as client:
            assert (await client.ask(get("/"))).json == {"error": "internal_error"}
    assert len(logs) == 1


async def test_a_request_kept_beyond_its_answer_reads_nothing_of_the_next_one(serving: Serving) -> None:
    kept: list[Request] = []

    async def keep(request: Request) -> Answer:
        kept.append(request)
        return json_answer(200, {})

    async with serving(keep) as running, running.client() as client:
        assert (await client.ask(request("POST", "/", b"12345")[:-1])).status == 200
        with pytest.raises(GateError):
            await kept[0].read_body()
        await client.send(b"5")
        assert (await client.ask(get("/"))).status == 200


async def test_a_deadline_of_the_handler_s_own_leaves_the_body_whole(serving: Serving) -> None:
    async def patient(request: Request) -> Answer:
        with trio.move_on_after(0.05):
            await request.read_body()
        return json_answer(200, (await request.read_body()).decode())

    async with serving(patient) as running, running.client() as client:
        await client.send(request("POST", "/", b"hello")[:-3])
        await trio.sleep(0.1)
        await client.send(b"llo")
        assert (await client.reply()).json == "hello"
