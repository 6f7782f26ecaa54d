"""The egress proxy, as this front sees it: whether it answers. Workers go through it; nothing is sent there from here.

Guarantees a bounded question: a proxy that takes a connection and says nothing is as good as none.
"""

import base64
import re
import ssl
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import trio

from frontend.deadlines import EgressDeadlines
from ipc.network.tls import client_context, problem_of

MAX_LINE_BYTES = 4096
NOWHERE = "gateway-check.invalid:443"
"""A host that there is not (RFC 6761)."""
SHOW_SECONDS = 10.0
_WANTS_OTHERS = 407
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})[ \r\n]")


class ProxyDown(Exception):
    """The proxy does not answer, or what answers is no HTTP proxy."""


def security_of(url: str | None, authorities: str | None) -> ssl.SSLContext | None:
    """How to agree on TLS with the proxy at this URL, by the authorities of a file or the system's; None for http.

    Raises ValueError for a file without certificates.
    """
    if url is None or urlsplit(url).scheme != "https":
        return None
    try:
        return client_context(authorities)
    except OSError:
        raise ValueError(f"egress.proxy_ca_file: {authorities} can't be read as certificates in PEM.") from None


def asker(
    url: str | None, deadlines: EgressDeadlines = EgressDeadlines(), authorities: str | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Callable[[], Awaitable[None]] | None:  # fmt: skip
    """A question to the proxy at this URL (`http://HOST:PORT`, `https://HOST:PORT`), which raises ProxyDown; None
    without a proxy. `authorities` is egress.proxy_ca_file. Raises ValueError as `security_of` does.

    Only the first line of an answer is read, at most `max_line_bytes`.
    """
    tls = security_of(url, authorities)
    if url is None:
        return None
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 0

    async def ask() -> None:
        try:
            with trio.fail_after(deadlines.ask_seconds):
                for pause in deadlines.pauses:
                    try:
                        return await _ask(host, port, parts.netloc, max_line_bytes, tls)
                    except OSError:
                        await trio.sleep(pause)
                await _ask(host, port, parts.netloc, max_line_bytes, tls)
        except trio.TooSlowError:
            raise ProxyDown(f"no answer within {deadlines.ask_seconds:g} s") from None
        except OSError as error:
            raise ProxyDown(str(error)) from None

    return ask


async def show(
    url: str, credentials: str, authorities: str | None = None, seconds: float = SHOW_SECONDS
) -> None:  # fmt: skip
    """Show the proxy at this URL `user:password`, with a request for a host that does not exist, to which it lets
    no client through. Raises ProxyDown, also where it does not take them."""
    parts, tls = urlsplit(url), security_of(url, authorities)
    shown = base64.b64encode(credentials.encode()).decode()
    head = f"CONNECT {NOWHERE} HTTP/1.1\r\nHost: {NOWHERE}\r\nProxy-Authorization: Basic {shown}\r\n\r\n"
    try:
        with trio.fail_after(seconds):
            status = await _answered(parts.hostname or "", parts.port or 0, head, MAX_LINE_BYTES, tls)
    except trio.TooSlowError:
        raise ProxyDown(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise ProxyDown(str(error)) from None
    if status == _WANTS_OTHERS:
        raise ProxyDown("it does not take the credentials of egress.proxy_secret")


async def _ask(host: str, port: int, authority: str, max_line_bytes: int, tls: ssl.SSLContext | None) -> None:
    """One request that every proxy answers by itself (RFC 9110 §7.6.2); any answer in HTTP will do, squid's is 501, or
    407 where it wants credentials: those are shown by workers alone."""
    head = f"OPTIONS * HTTP/1.1\r\nHost: {authority}\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n"
    await _answered(host, port, head, max_line_bytes, tls)


async def _answered(host: str, port: int, head: str, max_line_bytes: int, tls: ssl.SSLContext | None) -> int:
    """The status of the answer. Raises ProxyDown, OSError."""
    seen = b""
    try:
        async with await _connected(host, port, tls) as stream:
            await stream.send_all(head.encode("ascii"))
            while b"\n" not in seen and len(seen) < max_line_bytes:
                more = await stream.receive_some(max_line_bytes)
                if not more:
                    break
                seen += more
    except trio.BrokenResourceError as error:
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            raise ProxyDown(f"its certificate {problem_of(error.__cause__)}") from None
        raise ProxyDown("the connection broke") from None
    status = _STATUS_LINE.match(seen)
    if status is None:
        raise ProxyDown("what answers there is no HTTP proxy")
    return int(status[1])


async def _connected(host: str, port: int, tls: ssl.SSLContext | None) -> trio.abc.Stream:
    stream = await trio.open_tcp_stream(host, port)
    return stream if tls is None else trio.SSLStream(stream, tls, server_hostname=host, https_compatible=True)
