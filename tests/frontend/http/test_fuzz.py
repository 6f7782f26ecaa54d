"""Arbitrary and mutated bytes to a connection: well-formed answers or the end of the connection, and always an end."""

import socket

import h11
import msgspec
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from frontend.http.answers import Answer, json_answer
from frontend.http.connection import Connection, ListenerContext
from frontend.http.request_turns import RequestTurns
from frontend.http.requests import Request
from frontend.http.send_budget import SendBudget
from ipc.settings import LimitSettings

PIECES = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /p?q HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
    b"GET / HTTP/1.0\r\n\r\n",
    b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n", b"\n", b"\r", b"0\r\n\r\n", b" ", b":", b"\0",
]  # fmt: skip

LIMITS = LimitSettings(header_timeout_seconds=0.01, body_timeout_seconds=0.01, idle_timeout_seconds=0.01)


async def respond(request: Request) -> Answer:
    body = b"" if request.path == "/unread" else await request.read_body(20)
    return json_answer(200, len(body))


async def converse(parts: list[bytes]) -> bytes:
    ours, theirs = socket.socketpair()
    received = b""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, trio.SocketStream(trio.socket.from_stdlib_socket(theirs)) as client:
            nursery.start_soon(
                Connection(
                    ours, ListenerContext("client", respond, LIMITS, SendBudget(1 << 26), RequestTurns()), None
                ).run
            )
            try:
                for part in parts:
                    await client.send_all(part)
                await client.send_eof()
                while data := await client.receive_some():
                    received += data
            except trio.BrokenResourceError:
                pass
    assert ours.fileno() == -1
    return received


def check(stream: bytes, *, asks_for_heads: bool) -> None:
    """Every answer in `stream` is whole, well-formed and carries JSON (none where the request may have been HEAD, as
    some of those were if it `asks_for_heads`)."""
    while stream:
        status, _, _ = stream.partition(b"\r\n")
        length = int(stream.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) if b" 100 " not in status else 0
        end = stream.index(b"\r\n\r\n") + 4
        is_head = asks_for_heads and stream[end : end + 9] in (b"", b"HTTP/1.1 ") and b" 100 " not in status
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method="HEAD" if is_head else "GET", target="/", headers=[("host", "x")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(stream[: end if is_head else end + length])
        response = parser.next_event()
        assert isinstance(response, h11.Response | h11.InformationalResponse)
        if isinstance(response, h11.Response):
            assert response.status_code in (200, 400, 408, 413, 431)
            assert is_head or msgspec.json.decode(stream[end : end + length]) is not None
        stream = stream[end if is_head else end + length :]


mutations = st.builds(
    lambda data, at, cut, new: data[: at % (len(data) + 1)] + new + data[at % (len(data) + 1) + cut :],
    st.lists(st.sampled_from(PIECES), max_size=4).map(b"".join),
    st.integers(0, 400),
    st.integers(0, 4),
    st.sampled_from(PIECES) | st.binary(max_size=3),
)


@given(st.lists(mutations | st.binary(max_size=50), max_size=3))
@example([b"HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"])
def test_any_bytes_get_answers_or_an_end(parts: list[bytes]) -> None:
    check(trio.run(converse, parts), asks_for_heads=b"HEAD" in b"".join(parts))
