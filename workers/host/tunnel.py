"""The way through the egress proxy: a tunnel (RFC 9110 §9.3.6) to the upstream, for http and https alike.

Never the proxy's other way, a request with a whole URL: there a page of the proxy's own can't be told from the
upstream's answer, and a verifier would believe it. Here all that comes before the tunnel stands is the proxy's, and all
that comes through it the upstream's. The upstream's name is never resolved here; what it leads to, the proxy judges.
"""

import base64
import ipaddress
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from workers.host.connection import UpstreamConnection, dial, reached, seconds_left, secured
from workers.host.layered import Stream
from workers.host.meter import PROXY, HostError
from workers.host.network import NetworkContext, ProxyLimits
from workers.host.resolver import Resolver
from workers.host.urls import Target
from workers.host.wire import USER_AGENT, encode_request, read_connect_answer


class _ProxyRefused(HostError):
    """The proxy does not let through to the upstream."""

    def __init__(self) -> None:
        super().__init__("denied", f"{PROXY} refused the upstream")


class _Silent(HostError):
    """The proxy can't be reached, or hung up before it said anything."""

    def __init__(self, what: str) -> None:
        super().__init__("unavailable", f"{PROXY} {what}", retryable=True)


@dataclass(frozen=True, slots=True)
class Proxy:
    """At `http://HOST:PORT` or `https://HOST:PORT`; `credentials` are `user:password`, where it wants some."""

    url: str
    credentials: str | None = field(default=None, repr=False)


def authorization(credentials: str) -> str:
    """The value of Proxy-Authorization (RFC 7617) for `user:password`. Raises HostError for other texts."""
    if ":" not in credentials or any(ord(character) < 0x20 or ord(character) == 0x7F for character in credentials):
        raise HostError("internal", f"the credentials of {PROXY} are not user:password")
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def tunnel(proxy: "Proxy", target: Target, deadline: float, outside: NetworkContext, patience: float = 0.0) -> Stream:
    """A stream to the target through the proxy, with TLS inside it for https.

    A refusal is final after `patience` seconds, and so is silence: a proxy that reads a new list may close its port
    meanwhile. Raises HostError.
    """
    shown = None if proxy.credentials is None else authorization(proxy.credentials)
    way = _Way(
        _addresses(proxy.url, deadline, outside.resolver), target, deadline, outside.proxy_limits, shown,
        _security(proxy.url, outside),
    )  # fmt: skip
    stream = way.opened(outside.proxy_limits.clock() + patience)
    return reached(stream, deadline, outside.tls_for(target), target.host)


def _security(proxy_url: str, outside: NetworkContext) -> tuple[ssl.SSLContext, str] | None:
    """How to agree on TLS with the proxy, and whose certificate it must have."""
    parts = urlsplit(proxy_url)
    return (outside.proxy_tls or outside.tls, parts.hostname or "") if parts.scheme == "https" else None


def _addresses(proxy_url: str, deadline: float, resolver: Resolver) -> list[tuple[str, int]]:
    """Where the proxy is. Private addresses will do: the operator named it."""
    parts = urlsplit(proxy_url)
    host, port = parts.hostname, parts.port
    if host is None or port is None:
        raise HostError("internal", f"{PROXY} has no address that can be read")
    with suppress(ValueError):
        return [(str(ipaddress.ip_address(host)), port)]
    try:
        return [(address, port) for address in resolver.resolve(host, seconds_left(deadline, PROXY))]
    except HostError as error:
        when = " in time" if error.failure.kind == "timeout" else ""
        problem = f"{PROXY}'s name could not be resolved{when}"
        raise HostError(error.failure.kind, problem, retryable=True) from None


@dataclass(frozen=True, slots=True)
class _Way:
    """To the target by way of a proxy at one of these addresses, before the deadline."""

    addresses: list[tuple[str, int]]
    target: Target
    deadline: float
    limits: ProxyLimits
    authorization: str | None = field(default=None, repr=False)
    security: tuple[ssl.SSLContext, str] | None = None

    def opened(self, patient_until: float) -> Stream:
        """The stream of a tunnel that stands; tried again while neither refusal nor silence is final."""
        pause = self.limits.look_again_seconds
        while True:
            try:
                return self._opened()
            except (_ProxyRefused, _Silent):
                if self.limits.clock() + pause > min(patient_until, self.deadline):
                    raise
                self.limits.sleep(pause)

    def _opened(self) -> Stream:
        """The stream of a tunnel that stands; tried again while the proxy is silent."""
        for pause in self.limits.pauses_seconds:
            try:
                return self._attempt()
            except _Silent:
                if pause >= seconds_left(self.deadline, PROXY):
                    raise
                self.limits.sleep(pause)
        return self._attempt()

    def _attempt(self) -> Stream:
        stream: Stream
        try:
            stream = dial(self.addresses, self.deadline, PROXY)
        except HostError as error:
            if error.failure.kind == "timeout":
                raise
            raise _Silent("can't be reached") from None
        try:
            if self.security is not None:
                stream = secured(stream, self.deadline, *self.security, PROXY)
            status = self._ask(stream)
            if status == 407:
                wants = "wants credentials" if self.authorization is None else "does not take the credentials"
                raise HostError("denied", f"{PROXY} {wants}")
            if status >= 500:
                raise HostError("unavailable", f"{PROXY} could not reach the upstream", retryable=True)
            if status >= 300:
                raise _ProxyRefused
        except BaseException:
            stream.close()
            raise
        return stream

    def _ask(self, stream: Stream) -> int:
        """The answer of the proxy to CONNECT: a status of 200 or more."""
        connection = UpstreamConnection(stream, self.deadline, PROXY)
        is_silent = True

        def receive(count: int) -> bytes:
            nonlocal is_silent
            data = connection.receive(min(count, self.limits.read_bytes))
            is_silent = is_silent and not data
            return data

        if _speaks_unasked(stream):
            raise HostError("unavailable", f"{PROXY} answered before it was asked")
        authority = f"{self.target.host}:{self.target.port}"
        headers = [("host", authority), ("user-agent", USER_AGENT)]
        if self.authorization is not None:
            headers.append(("proxy-authorization", self.authorization))
        try:
            connection.send(encode_request("CONNECT", authority, tuple(headers), b""))
            status = read_connect_answer(receive)
        except HostError as error:
            if is_silent and error.failure.kind == "unavailable":
                raise _Silent("hung up without an answer") from None
            raise
        if status < 300 and _speaks_unasked(stream):
            raise HostError("unavailable", f"{PROXY} sends something behind its answer")
        return status


def _speaks_unasked(stream: Stream) -> bool:
    """Whether bytes are there before anything was sent that they could answer: those before CONNECT would pass for its
    answer, and those before the request for the upstream's."""
    stream.settimeout(0)
    try:
        return bool(stream.recv(1))  # nothing that is read here is used: it ends the connection
    except OSError:  # nothing has come, or whatever is wrong shows when we ask
        return False
