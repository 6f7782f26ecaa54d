"""The egress proxy, as this front sees it: whether it answers. Workers go through it; nothing is sent there from here.

Guarantees a bounded question: a proxy that takes a connection and says nothing is as good as none.
"""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import trio

ASK_SECONDS = 2.0
PAUSES = (0.05, 0.25)
"""Seconds before each further try while the port is closed: a squid that reads its configuration again closes it for
some milliseconds, and does so whenever live sync has written its list."""
MAX_LINE_BYTES = 4096
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [1-9][0-9]{2}[ \r\n]")


class ProxyDown(Exception):
    """The proxy does not answer, or what answers is no HTTP proxy."""


def asker(url: str | None) -> Callable[[], Awaitable[None]] | None:
    """A question to the proxy at this URL (`http://HOST:PORT`), which raises ProxyDown; None without a proxy."""
    if url is None:
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0

    async def ask() -> None:
        try:
            with trio.fail_after(ASK_SECONDS):
                for pause in PAUSES:
                    try:
                        return await _ask(host, port, parts.netloc)
                    except OSError:
                        await trio.sleep(pause)
                await _ask(host, port, parts.netloc)
        except trio.TooSlowError:
            raise ProxyDown(f"no answer within {ASK_SECONDS:g} s") from None
        except OSError as error:
            raise ProxyDown(str(error)) from None

    return ask


async def _ask(host: str, port: int, authority: str) -> None:
    """One request that every proxy answers by itself (RFC 9110 §7.6.2); any answer in HTTP will do, squid's is 501."""
    head = f"OPTIONS * HTTP/1.1\r\nHost: {authority}\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"
    seen = b""
    try:
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(head.encode("ascii"))
            while b"\n" not in seen and len(seen) < MAX_LINE_BYTES:
                more = await stream.receive_some(MAX_LINE_BYTES)
                if not more:
                    break
                seen += more
    except trio.BrokenResourceError:
        raise ProxyDown("the connection broke") from None
    if not _STATUS_LINE.match(seen):
        raise ProxyDown("what answers there is no HTTP proxy")
