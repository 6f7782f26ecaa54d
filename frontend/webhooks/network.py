"""How an attempt reaches an endpoint: the name is looked up once, and what was looked at is what is connected to.

Guarantees that no address is reached that is not public, or else allowed by the caller, whatever a name
says at another time; that certificates are checked against the system's authorities and the name; that an answer takes
bounded memory. Has no deadlines of its own: the caller gives all of an attempt one. SECURITY: nothing that is
raised names a host or an address.
"""

import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpcore
import trio

from ipc.network.addresses import is_public, split_address
from ipc.network.tls import client_context, problem_of

MAX_ADDRESSES = 4
"""The most addresses of a name that are tried."""
MAX_ANSWER_BYTES = 64 * 1024
"""Head and body of an answer: what comes then is not read."""


class Blocked(Exception):
    """The name leads nowhere that may be reached. A sentence."""


class EndpointUnreached(Exception):
    """The endpoint was not reached, this time. A sentence."""


def make_tls() -> ssl.SSLContext:
    """Client context: TLS 1.2 or later, system authorities, names checked. Blocks for some milliseconds."""
    return client_context()


class Network(httpcore.AsyncNetworkBackend):
    """The one connection of one attempt. `resolve` is egress.unsafe_resolve; `lookups` bounds threads that look up;
    `may_reach` says of an address whether it may be connected to."""

    def __init__(
        self, resolve: Mapping[str, str], lookups: trio.CapacityLimiter, may_reach: Callable[[str], bool] = is_public
    ) -> None:  # fmt: skip
        self._resolve = resolve
        self._lookups = lookups
        self._may_reach = may_reach
        self._line: WebhookStream | None = None

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the host's addresses that takes it. Raises Blocked, EndpointUnreached."""
        mapped = self._resolve.get(host)
        if mapped is not None:
            places = [split_address(mapped)]
        else:
            places = [(address, port) for address in self.allowed(host, port, await self._addresses(host))]
        for position, (address, its_port) in enumerate(places):
            # Below 0 for a process that was stopped meanwhile.
            left = max(0.0, trio.current_effective_deadline() - trio.current_time())
            with trio.move_on_after(left / (len(places) - position)):
                self._line = await _dialled(address, its_port)
            if self._line is not None:
                return self._line
        raise EndpointUnreached("no connection could be made")

    def allowed(self, host: str, port: int, addresses: list[str]) -> list[str]:  # noqa: ARG002 - for those who judge by them
        """Those of a name's addresses that may be connected to. Raises Blocked for a name without one."""
        allowed = [address for address in addresses if self._may_reach(address)]
        if not allowed:
            raise Blocked("the name leads to private or reserved addresses only")
        return allowed[:MAX_ADDRESSES]

    async def close(self) -> None:
        """Give up whatever is open."""
        if self._line is not None:
            await self._line.aclose()

    async def _addresses(self, host: str) -> list[str]:
        look_up = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        try:
            entries = await trio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=self._lookups)
        except (OSError, UnicodeError, RuntimeError):  # the last: there is no thread
            raise EndpointUnreached("the name could not be resolved") from None
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


async def _dialled(address: str, port: int) -> "WebhookStream | None":
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        # SECURITY: a socket connects to the address that was looked at; nothing is asked what it means.
        one = trio.socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        await one.connect((address, port))
        return WebhookStream(trio.SocketStream(one))
    except OSError:
        one.close()
        return None
    except BaseException:
        one.close()
        raise


class WebhookStream(httpcore.AsyncNetworkStream):
    """A connected stream. Closing it never waits for the other side."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._left = MAX_ANSWER_BYTES
        self.own_tls: ssl.SSLContext | None = None
        """Instead of the context that httpcore was given."""

    @property
    def is_too_long(self) -> bool:
        """True if more may have come than is read."""
        return self._left <= 0

    async def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        """Up to so many bytes; b"" at the end, and where an answer has become too long."""
        if self._left <= 0:
            return b""
        try:
            data = await self._stream.receive_some(min(max_bytes, self._left))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise httpcore.ReadError from None
        self._left -= len(data)
        return bytes(data)

    async def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        """Send everything."""
        try:
            await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise httpcore.WriteError from None

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_: Any, **__: Any
    ) -> httpcore.AsyncNetworkStream:
        """Go on in TLS, for this name. Raises EndpointUnreached."""
        encrypted = trio.SSLStream(
            self._stream, self.own_tls or ssl_context, server_hostname=server_hostname, https_compatible=True
        )
        try:
            await encrypted.do_handshake()
        except trio.BrokenResourceError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise EndpointUnreached(f"the certificate {problem_of(error.__cause__)}") from None
            raise EndpointUnreached("TLS could not be agreed on") from None
        self._stream = encrypted
        return self

    async def aclose(self) -> None:
        """Close, without a word."""
        await trio.aclose_forcefully(self._stream)

    def get_extra_info(self, _: str) -> Any:
        """Return None: no other protocol than HTTP/1.1 was offered."""
        return None
