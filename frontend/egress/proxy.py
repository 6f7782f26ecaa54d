"""The egress proxy, as this front sees it: whether it answers. Workers go through it; nothing is sent there from here.

Guarantees a bounded question: a proxy that takes a connection and says nothing is as good as none.
"""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import trio

from frontend.egress.deadlines import EgressDeadlines

MAX_LINE_BYTES = 4096
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] [1-9][0-9]{2}[ \r\n]")


class ProxyDown(Exception):
    """The proxy does not answer, or what answers is no HTTP proxy."""


def asker(
    url: str | None, deadlines: EgressDeadlines = EgressDeadlines(), max_line_bytes: int = MAX_LINE_BYTES
) -> Callable[[], Awaitable[None]] | None:
    """A question to the proxy at this URL (`http://HOST:PORT`), which raises ProxyDown; None without a proxy.

    Of an answer no more than its first line is read, `max_line_bytes` at most.
    """
    if url is None:
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0

    async def ask() -> None:
        try:
            with trio.fail_after(deadlines.ask_seconds):
                for pause in deadlines.pauses:
                    try:
                        return await _ask(host, port, parts.netloc, max_line_bytes)
                    except OSError:
                        await trio.sleep(pause)
                await _ask(host, port, parts.netloc, max_line_bytes)
        except trio.TooSlowError:
            raise ProxyDown(f"no answer within {deadlines.ask_seconds:g} s") from None
        except OSError as error:
            raise ProxyDown(str(error)) from None

    return ask


async def _ask(host: str, port: int, authority: str, max_line_bytes: int) -> None:
    """One request that every proxy answers by itself (RFC 9110 §7.6.2); any answer in HTTP will do, squid's is 501."""
    head = f"OPTIONS * HTTP/1.1\r\nHost: {authority}\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"
    seen = b""
    try:
        async with await trio.open_tcp_stream(host, port) as stream:
            await stream.send_all(head.encode("ascii"))
            while b"\n" not in seen and len(seen) < max_line_bytes:
                more = await stream.receive_some(max_line_bytes)
                if not more:
                    break
                seen += more
    except trio.BrokenResourceError:
        raise ProxyDown("the connection broke") from None
    if not _STATUS_LINE.match(seen):
        raise ProxyDown("what answers there is no HTTP proxy")
