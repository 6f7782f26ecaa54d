"""How the broker reaches a server that a manifest names: public addresses, or a private network of the configuration.

Guarantees that a name is looked up once and judged as workers judge it (ipc/network/reach.py), that certificates are
checked, and that an answer takes bounded memory. Contexts of TLS are made before the walls stand: behind them the
broker opens no file. SECURITY: nothing that is raised names a host or an address.
"""

import ssl
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore
import trio

from frontend.http.client_bodies import OutgoingBody
from frontend.telemetry.logs import log
from frontend.webhooks.network import (
    MAX_ADDRESSES,
    MAX_ANSWER_BYTES,
    Blocked,
    EndpointUnreached,
    Network,
    WebhookStream,
)
from ipc.configuration.networks import NetworkSettings, NetworkTls, PlanNetwork
from ipc.network.reach import Reach, ReachRefused, may_send_plain, reach_of
from ipc.network.tls import client_context, show_certificate
from ipc.settings import EgressSettings

MAX_LOOKUPS = 8
"""Threads that look up names."""
_PORTS = {"http": 80, "https": 443}


class NotReached(Exception):
    """There is no answer in HTTP. A sentence without host and address."""


class ServerAnswer:
    """The status, the kind and the body of an answer, which may repeat a secret."""

    __slots__ = ("body", "content_type", "status")

    def __init__(self, status: int, content_type: str, body: bytes) -> None:
        self.status = status
        self.content_type = content_type
        self.body = body

    def __repr__(self) -> str:
        return f"<answer {self.status}>"


class Servers:
    """Sends requests to servers outside. Makes contexts of TLS when it is made, which reads files and blocks."""

    def __init__(self, egress: EgressSettings, own_servers: frozenset[str]) -> None:
        """No private network leads to `own_servers` (ipc/network/own_servers.py)."""
        self._own_servers = own_servers
        self._resolve = egress.unsafe_resolve
        self._networks = tuple(one.planned for one in egress.networks)
        self._public = client_context()
        self._contexts = {one.name: context for one in egress.networks if (context := _context_of(one)) is not None}
        self._lookups = trio.CapacityLimiter(MAX_LOOKUPS)

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> ServerAnswer:
        """Send one request with a secret, by the caller's deadline. No redirect is followed. Raises NotReached."""
        parts = urlsplit(url)
        if parts.scheme != "https" and not may_send_plain(_host_of(parts), self._networks):
            self._need_mapped(parts, "a secret is never sent without TLS")
        return await self._answered("POST", parts, headers | {"content-length": str(len(body))}, body)

    async def get(self, url: str, headers: dict[str, str]) -> ServerAnswer:
        """Read what is there, by the caller's deadline. No redirect is followed. Raises NotReached."""
        parts = urlsplit(url)
        if parts.scheme != "https":
            self._need_mapped(parts, "keys are never read without TLS")
        return await self._answered("GET", parts, headers, b"")

    def _need_mapped(self, parts: SplitResult, refusal: str) -> None:
        if _host_of(parts) not in self._resolve:
            raise NotReached(refusal)

    async def _answered(self, method: str, parts: SplitResult, headers: dict[str, str], body: bytes) -> ServerAnswer:
        network = _JudgedNetwork(self)
        answer = None
        try:
            answer = await self._sent(network, method, parts, headers, body)
        except (Blocked, EndpointUnreached) as error:
            raise NotReached(str(error)) from None
        except (httpcore.ProtocolError, httpcore.NetworkError):
            pass  # told below: it may be the length that broke it off
        finally:
            with trio.CancelScope(shield=True):
                await network.close()
        if network.is_too_long:
            raise NotReached(f"its answer is larger than {MAX_ANSWER_BYTES // 1024} KiB")
        if answer is None:
            raise NotReached("the connection ended without a whole answer in HTTP")
        return answer

    async def _sent(
        self, network: Network, method: str, parts: SplitResult, headers: dict[str, str], body: bytes
    ) -> ServerAnswer:
        host, port = _host_of(parts), parts.port or _PORTS[parts.scheme]
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        at = host if parts.port is None else f"{host}:{port}"
        all_headers = {"host": at, "connection": "close", "accept-encoding": "identity"} | headers
        url = httpcore.URL(scheme=parts.scheme, host=host, port=port, target=target)
        connection = httpcore.AsyncHTTPConnection(url.origin, ssl_context=self._public, network_backend=network)
        async with connection.stream(
            method, url, headers=list(all_headers.items()), content=OutgoingBody(body)
        ) as response:
            kinds = [value.decode("latin-1") for name, value in response.headers if name.lower() == b"content-type"]
            return ServerAnswer(response.status, ",".join(kinds), await response.aread())

    def judge(self, host: str, port: int, addresses: list[str]) -> Reach:
        """Where this name may be connected to. Raises Blocked."""
        try:
            return reach_of(host, port, addresses, self._networks, self._own_servers)
        except ReachRefused as error:
            raise Blocked(str(error)) from None

    @property
    def resolve(self) -> dict[str, str]:
        """Names of a dev gateway that are not looked up."""
        return self._resolve

    @property
    def lookups(self) -> trio.CapacityLimiter:
        """Bounds threads."""
        return self._lookups

    def tls_for(self, network: PlanNetwork | None) -> ssl.SSLContext:
        """The context of the network that the address lies in, or that of the system's authorities. Raises Blocked."""
        if network is None or network.tls is None:
            return self._public
        if network.name not in self._contexts:
            raise Blocked(f"the files of TLS of the private network {network.name} can't be read")
        return self._contexts[network.name]

    @property
    def public_tls(self) -> ssl.SSLContext:
        """By the system's authorities."""
        return self._public


def _host_of(parts: SplitResult) -> str:
    return (parts.hostname or "").lower()


class _JudgedNetwork(Network):
    def __init__(self, servers: Servers) -> None:
        super().__init__(servers.resolve, servers.lookups)
        self._servers = servers
        self._tls = servers.public_tls
        self._line: WebhookStream | None = None

    @property
    def is_too_long(self) -> bool:
        """True if the answer may be longer than what is read of it."""
        return self._line is not None and self._line.is_too_long

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """See Network. TLS is that of the network in which the address lies."""
        line = await super().connect_tcp(host, port)
        assert isinstance(line, WebhookStream)
        line.own_tls = self._tls
        self._line = line
        return line

    def allowed(self, host: str, port: int, addresses: list[str]) -> list[str]:
        """See Network."""
        reach = self._servers.judge(host, port, addresses)
        self._tls = self._servers.tls_for(reach.network)
        return list(reach.addresses)[:MAX_ADDRESSES]


def _context_of(network: NetworkSettings) -> ssl.SSLContext | None:
    tls: NetworkTls | None = network.tls
    if tls is None:
        return None
    try:
        context = client_context(tls.ca_file)
        show_certificate(context, tls)
    except (OSError, ValueError) as error:
        log.error("the files of TLS of a network can't be read", network=network.name, cause=type(error).__name__)
        return None
    return context
