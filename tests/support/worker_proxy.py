"""A proxy for the http host call: one that lets through, and plans that go through it. What proxies do wrong is said by
a script, as of an upstream (tests/support/worker_upstream.py)."""

import socket
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


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def proxied_plan(proxy: str | None, url_host: str = "upstream.test", **changes: Any) -> Plan:
    """A plan that may GET and POST to one host, through the proxy at `host:port`."""
    plan = http_plan(url_host, **changes)
    url = None if proxy is None else f"http://{proxy}"
    return msgspec.structs.replace(
        plan, egress=msgspec.structs.replace(plan.egress, profile="proxy_allowlist", proxy_url=url)
    )
