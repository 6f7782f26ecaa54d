"""The way through the egress proxy: a tunnel (RFC 9110 §9.3.6) to the upstream, for http and https alike.

Never the proxy's other way, a request with a whole URL: there a page of the proxy's own can't be told from the
upstream's answer, and a verifier would believe it. Here all that comes before the tunnel stands is the proxy's, and all
that comes through it the upstream's. The upstream's name is never resolved here; what it leads to, the proxy judges.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from workers.host.connection import Connection, conversation, dial, seconds_left
from workers.host.meter import PROXY, HostError
from workers.host.resolver import Resolver
from workers.host.urls import Target
from workers.host.wire import USER_AGENT, encode_request, read_connect_answer

PAUSES = (0.05, 0.25)
"""Seconds before each further try while the proxy says nothing at all: a squid that reads its configuration again
closes its port for some milliseconds. Nothing of a request has been sent by then, so that nothing is sent twice."""


LOOK_AGAIN_SECONDS = 0.2
"""Between two tries while a refusal may be a list that the proxy has not read yet."""


class _Refused(HostError):
    """The proxy does not let through to the upstream."""

    def __init__(self) -> None:
        super().__init__("denied", f"{PROXY} refused the upstream")


class _Silent(HostError):
    """The proxy can't be reached, or hung up before it said anything."""

    def __init__(self, what: str) -> None:
        super().__init__("unavailable", f"{PROXY} {what}", retryable=True)


@contextmanager
def tunnel(
    proxy_url: str, target: Target, deadline: float, tls: ssl.SSLContext | None, resolver: Resolver,
    patience: float = 0.0,
) -> Iterator[Connection]:  # fmt: skip
    """A connection to the target through the proxy at `http://HOST:PORT`, with TLS inside it unless `tls` is None.

    A refusal is final after `patience` seconds. Raises HostError.
    """
    stream = _let_through(_addresses(proxy_url, deadline, resolver), target, deadline, time.monotonic() + patience)
    with conversation(stream, deadline, tls, target.host) as connection:
        yield connection


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


def _let_through(
    addresses: list[tuple[str, int]], target: Target, deadline: float, patient_until: float
) -> socket.socket:
    """The stream of a tunnel that stands; tried again while a refusal is not final."""
    while True:
        try:
            return _opened(addresses, target, deadline)
        except _Refused:
            if time.monotonic() + LOOK_AGAIN_SECONDS > min(patient_until, deadline):
                raise
            time.sleep(LOOK_AGAIN_SECONDS)


def _opened(addresses: list[tuple[str, int]], target: Target, deadline: float) -> socket.socket:
    """The stream of a tunnel that stands; tried again while the proxy is silent."""
    for pause in PAUSES:
        try:
            return _attempt(addresses, target, deadline)
        except _Silent:
            if pause >= seconds_left(deadline, PROXY):
                raise
            time.sleep(pause)
    return _attempt(addresses, target, deadline)


def _attempt(addresses: list[tuple[str, int]], target: Target, deadline: float) -> socket.socket:
    try:
        stream = dial(addresses, deadline, PROXY)
    except HostError as error:
        if error.failure.kind == "timeout":
            raise
        raise _Silent("can't be reached") from None
    try:
        status = _ask(stream, target, deadline)
        if status == 407:
            raise HostError("denied", f"{PROXY} wants credentials, which this version does not send")
        if status >= 500:
            raise HostError("unavailable", f"{PROXY} could not reach the upstream", retryable=True)
        if status >= 300:
            raise _Refused
    except BaseException:
        stream.close()
        raise
    return stream


def _ask(stream: socket.socket, target: Target, deadline: float) -> int:
    """What the proxy answers to CONNECT: a status of 200 or more."""
    connection = Connection(stream, deadline, PROXY)
    is_silent = True

    def receive(count: int) -> bytes:
        nonlocal is_silent
        data = connection.receive(count)
        is_silent = is_silent and not data
        return data

    if _speaks_unasked(stream):
        raise HostError("unavailable", f"{PROXY} answered before it was asked")
    authority = f"{target.host}:{target.port}"
    try:
        connection.send(encode_request("CONNECT", authority, (("host", authority), ("user-agent", USER_AGENT)), b""))
        status = read_connect_answer(receive)
    except HostError as error:
        if is_silent and error.failure.kind == "unavailable":
            raise _Silent("hung up without an answer") from None
        raise
    if status < 300 and _speaks_unasked(stream):
        raise HostError("unavailable", f"{PROXY} sends something behind its answer")
    return status


def _speaks_unasked(stream: socket.socket) -> bool:
    """Whether bytes are there before anything was sent that they could answer: those before CONNECT would pass for its
    answer, and those before the request for the upstream's."""
    stream.settimeout(0)
    try:
        return bool(stream.recv(1, socket.MSG_PEEK))
    except OSError:  # nothing has come, or whatever is wrong shows when we ask
        return False
