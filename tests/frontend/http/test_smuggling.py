"""Hostile bytes over real sockets: what is refused, what is served, and that nothing hidden ever reaches a handler."""

import pytest
import trio

from frontend.http.answers import Answer, json_answer
from frontend.http.requests import Request
from tests.support.http_socket import Serving

EVIL = b"GET /evil HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKS = b"0\r\n\r\n"


def head(*lines: bytes) -> bytes:
    return b"\r\n".join([*lines, b"", b""])


POST, HOST = b"POST /ok HTTP/1.1", b"Host: x"
TE, CL = b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(EVIL)

REFUSED = {
    "both lengths": head(POST, HOST, CL, TE) + CHUNKS + EVIL,
    "both lengths, the other way round": head(POST, HOST, TE, b"Content-Length: 0") + CHUNKS + EVIL,
    "two equal lengths": head(POST, HOST, b"Content-Length: 0", b"Content-Length: 0") + EVIL,
    "two lengths": head(POST, HOST, b"Content-Length: 0", CL) + EVIL,
    "a list of lengths": head(POST, HOST, b"Content-Length: 0, 0") + EVIL,
    "a signed length": head(POST, HOST, b"Content-Length: +0") + EVIL,
    "a negative length": head(POST, HOST, b"Content-Length: -1") + EVIL,
    "a hexadecimal length": head(POST, HOST, b"Content-Length: 0x0") + EVIL,
    "an empty length": head(POST, HOST, b"Content-Length:") + EVIL,
    "a length with an underscore": head(POST, HOST, b"Content-Length: 1_0") + EVIL,
    "a length in other digits": head(POST, HOST, "Content-Length: \N{ARABIC-INDIC DIGIT ZERO}".encode()) + EVIL,
    "an endless length": head(POST, HOST, b"Content-Length: " + b"9" * 40) + EVIL,
    "a length in words": head(POST, HOST, b"Content-Length: two") + EVIL,
    "both lengths in other cases": head(POST, HOST, b"content-LENGTH: 5", b"TRANSFER-encoding: CHUNKED")
    + CHUNKS
    + EVIL,
    "an unknown coding": head(POST, HOST, b"Transfer-Encoding: gzip") + CHUNKS + EVIL,
    "a list of codings": head(POST, HOST, b"Transfer-Encoding: gzip, chunked") + CHUNKS + EVIL,
    "chunked twice": head(POST, HOST, TE, TE) + CHUNKS + EVIL,
    "chunked in a list": head(POST, HOST, b"Transfer-Encoding: chunked, chunked") + CHUNKS + EVIL,
    "chunked before an unknown coding": head(POST, HOST, b"Transfer-Encoding:\tchunked, cow") + CHUNKS + EVIL,
    "a coding that starts with x": head(POST, HOST, b"Transfer-Encoding: xchunked") + CHUNKS + EVIL,
    "identity": head(POST, HOST, b"Transfer-Encoding: identity") + EVIL,
    "an empty coding": head(POST, HOST, b"Transfer-Encoding:") + EVIL,
    "a quoted coding": head(POST, HOST, b'Transfer-Encoding: "chunked"') + CHUNKS + EVIL,
    "a coding with a vertical tab": head(POST, HOST, b"Transfer-Encoding: \x0bchunked") + CHUNKS + EVIL,
    "a coding with no-break space": head(POST, HOST, b"Transfer-Encoding: \xa0chunked") + CHUNKS + EVIL,
    "chunks in HTTP/1.0": head(b"POST /ok HTTP/1.0", HOST, TE) + CHUNKS + EVIL,
    "space before the colon": head(POST, HOST, b"Content-Length : 5") + EVIL,
    "tab before the colon": head(POST, HOST, b"Transfer-Encoding\t: chunked") + CHUNKS + EVIL,
    "space before the name": head(POST, b" Host: x", CL) + EVIL,
    "a folded length": head(POST, HOST, b"Content-Length:", b" 5") + EVIL,
    "a folded coding": head(POST, HOST, b"Transfer-Encoding:", b"\tchunked") + CHUNKS + EVIL,
    "a fold of the first line": head(POST, b" Content-Length: 5", HOST) + EVIL,
    "bare line feeds": b"POST /ok HTTP/1.1\nHost: x\n\n" + EVIL,
    "one bare line feed": b"POST /ok HTTP/1.1\r\nHost: x\nContent-Length: 5\r\n\r\n" + EVIL,
    "a bare line feed as the empty line": b"POST /ok HTTP/1.1\r\nHost: x\r\n\n" + EVIL,
    "a bare carriage return": head(POST, HOST, b"A: b\rContent-Length: 5") + EVIL,
    "a doubled carriage return": head(POST, HOST + b"\r", b"A: b") + EVIL,
    "a null byte in a value": head(POST, HOST, b"A: b\0c") + EVIL,
    "a null byte in a name": head(POST, HOST, b"A\0: b") + EVIL,
    "a control character in a value": head(POST, HOST, b"A: \x01") + EVIL,
    "a delete character": head(POST, HOST, b"A: \x7f") + EVIL,
    "no colon": head(POST, HOST, b"Content-Length 5") + EVIL,
    "an empty name": head(POST, HOST, b": x") + EVIL,
    "a name that is no token": head(POST, HOST, b"Content(Length): 5") + EVIL,
    "a name beyond ASCII": head(POST, HOST, "Cöntent-Length: 5".encode()) + EVIL,
    "two hosts": head(POST, HOST, HOST) + EVIL,
    "no host": head(POST, b"A: b") + EVIL,
    "a list of hosts": head(POST, b"Host: x y") + EVIL,
    "a host with a path": head(POST, b"Host: x/y") + EVIL,
    "a host with a user": head(POST, b"Host: u@x") + EVIL,
    "empty line first": b"\r\n" + head(POST, HOST) + EVIL,
    "two spaces": head(b"POST  /ok HTTP/1.1", HOST) + EVIL,
    "a tab between": head(b"POST\t/ok HTTP/1.1", HOST) + EVIL,
    "a space inside the target": head(b"POST /ok /evil HTTP/1.1", HOST) + EVIL,
    "a space at the end": head(b"POST /ok HTTP/1.1 ", HOST) + EVIL,
    "no version": head(b"GET /ok", HOST) + EVIL,
    "version 0.9": head(b"GET /ok HTTP/0.9", HOST) + EVIL,
    "HTTP/0.9 without a version": b"GET /ok\r\n\r\n" + EVIL,
    "version 1.2": head(b"GET /ok HTTP/1.2", HOST) + EVIL,
    "version 2": head(b"PRI * HTTP/2.0") + b"SM\r\n\r\n" + EVIL,
    "version 1.10": head(b"GET /ok HTTP/1.10", HOST) + EVIL,
    "version in lower case": head(b"GET /ok http/1.1", HOST) + EVIL,
    "version 3.0": head(b"GET /ok HTTP/3.0", HOST) + EVIL,
    "no target": head(b"GET HTTP/1.1", HOST) + EVIL,
    "a method with brackets": head(b"G[E]T /ok HTTP/1.1", HOST) + EVIL,
    "a method that is no token": head(b"PO ST /ok HTTP/1.1", HOST) + EVIL,
    "no method": head(b"/ok HTTP/1.1", HOST) + EVIL,
    "CONNECT": head(b"CONNECT evil.example:443 HTTP/1.1", HOST) + EVIL,
    "CONNECT to a path": head(b"CONNECT /evil HTTP/1.1", HOST) + EVIL,
    "asterisk": head(b"OPTIONS * HTTP/1.1", HOST) + EVIL,
    "a relative target": head(b"GET ok HTTP/1.1", HOST) + EVIL,
    "an authority as target": head(b"GET x:80 HTTP/1.1", HOST) + EVIL,
    "another scheme": head(b"GET file:///etc/passwd HTTP/1.1", HOST) + EVIL,
    "a scheme without authority": head(b"GET http:/ok HTTP/1.1", HOST) + EVIL,
    "an authority with a user": head(b"GET http://u@x/ok HTTP/1.1", HOST) + EVIL,
    "a fragment": head(b"GET /ok#evil HTTP/1.1", HOST) + EVIL,
    "a control character in the target": head(b"GET /o\x01k HTTP/1.1", HOST) + EVIL,
    "a null byte in the target": head(b"GET /o\0k HTTP/1.1", HOST) + EVIL,
    "a target beyond ASCII": head("GET /ök HTTP/1.1".encode(), HOST) + EVIL,
    "a target in another encoding": head(b"GET /\xf6k HTTP/1.1", HOST) + EVIL,
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + EVIL,
    "an SSH greeting": b"SSH-2.0-OpenSSH_9.2\r\n\r\n" + EVIL,
    "a proxy's greeting": b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n\r\n" + EVIL,
    "binary noise": bytes(range(256)) * 4 + EVIL,
}

SERVED = {
    "length": (head(POST, HOST, CL) + EVIL, ["/ok"]),
    "chunks": (head(POST, HOST, TE) + b"%x\r\n%b\r\n" % (len(EVIL), EVIL) + CHUNKS, ["/ok"]),
    "leading zeros": (head(POST, HOST, b"Content-Length: 0000") + head(b"GET /next HTTP/1.1", HOST), ["/ok", "/next"]),
    "absolute form": (head(b"GET http://evil.example/ok?x HTTP/1.1", HOST), ["/ok"]),
    "absolute form without a path": (head(b"GET http://evil.example HTTP/1.1", HOST), ["/"]),
    "a look-alike name": (head(b"GET /ok HTTP/1.1", HOST, b"Content_Length: 5", b"X-Content-Length: 7"), ["/ok"]),
    "an upgrade that is not taken up": (
        head(b"GET /ok HTTP/1.1", HOST, b"Upgrade: h2c", b"Connection: Upgrade") + head(b"GET /next HTTP/1.1", HOST),
        ["/ok", "/next"],
    ),
    "an empty host": (head(b"GET /ok HTTP/1.1", b"Host:"), ["/ok"]),
    "an address as host": (head(b"GET /ok HTTP/1.1", b"Host: [::1]:80"), ["/ok"]),
    "values beyond ASCII": (head(b"GET /ok HTTP/1.1", HOST, b"A: \xf6\xff"), ["/ok"]),
    "no spaces around a value": (head(b"GET /ok HTTP/1.1", b"Host:x", b"A:\tb \t"), ["/ok"]),
    "a path that climbs": (head(b"GET /ok/../%2e%2e/%00 HTTP/1.1", HOST), ["/ok/../%2e%2e/%00"]),
    "any method": (head(b"BREW /ok HTTP/1.1", HOST), ["/ok"]),
}  # fmt: skip


async def talk(serving: Serving, data: bytes) -> tuple[list[int], list[str]]:
    """Statuses answered and paths that reached the handler, once the client has sent everything and ended its side."""
    seen: list[str] = []
    statuses: list[int] = []

    async def note(request: Request) -> Answer:
        await request.read_body()
        seen.append(request.path)
        return json_answer(200, {})

    async with serving(note) as running, running.client() as client:
        await client.send(data)
        await client.stream.send_eof()
        try:
            while True:
                reply = await client.reply()
                statuses.append(reply.status)
                assert reply.status == 200 or set(reply.json) <= {"error", "reason"}
                if reply.headers.get("connection") == "close":
                    break
        except (EOFError, trio.BrokenResourceError):
            pass
        assert await client.rest() == b""
    return statuses, seen


@pytest.mark.parametrize("name", REFUSED)
async def test_a_head_that_two_servers_could_read_differently_is_refused(serving: Serving, name: str) -> None:
    assert await talk(serving, REFUSED[name]) == ([400], [])


@pytest.mark.parametrize("name", SERVED)
async def test_plain_requests_alone_are_served(serving: Serving, name: str) -> None:
    data, paths = SERVED[name]
    assert await talk(serving, data) == ([200] * len(paths), paths)


@pytest.mark.parametrize(
    "data",
    [
        head(b"GET /ok HTTP/1.1", HOST, b"A: " + b"b" * 40_000),
        head(b"GET /" + b"a" * 40_000 + b" HTTP/1.1", HOST),
        head(b"GET /ok HTTP/1.1", HOST, *[b"A: b"] * 101),
        b"GET /ok HTTP/1.1\r\n" + b"A: b\r\n" * 20_000,
    ],
    ids=["long value", "long target", "many headers", "endless headers"],
)
async def test_heads_beyond_the_limits_are_refused(serving: Serving, data: bytes) -> None:
    assert await talk(serving, data) == ([431], [])
