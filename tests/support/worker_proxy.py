"""A proxy for the http host call that forwards, and plans that use it. A script plays a faulty proxy, as for an
upstream (tests/support/worker_upstream.py)."""

import select
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any

import msgspec

from ipc.plan import Plan
from tests.support.worker_plans import http_plan
from tests.support.worker_upstream import Answer

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


def letting_through(address: str, head: bytes = ESTABLISHED) -> Answer:
    """Answers CONNECT with `head`, and is the way to `address` from then on, whatever was asked for."""
    host, _, port = address.rpartition(":")

    def relay(connection: socket.socket) -> None:
        with socket.create_connection((host, int(port)), timeout=60) as onward:
            connection.sendall(head)
            back = threading.Thread(target=_pump, args=(onward, connection), daemon=True)
            back.start()
            _pump(connection, onward)
            back.join(60)

    return relay


def through_tls(address: str) -> Answer:
    """The same for a proxy that is spoken to over TLS, of which only one thread may read and write at a time."""
    host, _, port = address.rpartition(":")

    def relay(connection: socket.socket) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        with socket.create_connection((host, int(port)), timeout=60) as onward, suppress(OSError):
            connection.sendall(ESTABLISHED)
            while True:
                is_asked = connection.pending() or connection.fileno() in _ready(connection, onward)
                source, sink = (connection, onward) if is_asked else (onward, connection)
                data = source.recv(65536)
                if not data:
                    return
                sink.sendall(data)

    return relay


def _ready(*sockets: socket.socket) -> set[int]:
    """Which of them have something to read, or have ended, once one has; by their descriptors."""
    poll = select.poll()  # not select.select: a run may have more than a thousand files open
    for one in sockets:
        poll.register(one, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(60_000)}


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def proxied_plan(
    proxy: str | None, url_host: str = "upstream.test", scheme: str = "http", **changes: Any
) -> Plan:  # fmt: skip
    """A plan that may GET and POST to one host, through the proxy at `host:port`."""
    plan = http_plan(url_host, **changes)
    url = None if proxy is None else f"{scheme}://{proxy}"
    return msgspec.structs.replace(
        plan, egress=msgspec.structs.replace(plan.egress, profile="proxy_allowlist", proxy_url=url)
    )
