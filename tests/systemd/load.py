"""Clients that connect anew for each request, as agents do that come and go; failures are reported, never retried."""

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.gateway import Bearer, Prover
from tests.support.systemd_box import PUBLIC_URL, Installed

THREADS = 8
CALL_EACH = 25
"""One request of so many calls an action; the others ask whether the gateway is ready, which it must always be."""
ANSWER_SECONDS = 120.0

Head = dict[str, str]


class Load:
    """Requests by several clients at a time, until told to stop or until there were enough."""

    def __init__(self, gate: Installed, enough: int) -> None:
        self.path = gate.ready["client_socket"]
        self.failures: list[str] = []
        self.served: Counter[str] = Counter()
        self._enough = enough
        self._lock = threading.Lock()
        self._begun = 0
        self._agents = [gate.agent() for _ in range(THREADS)]
        self._threads = [threading.Thread(target=self._run, args=(agent,)) for agent in self._agents]

    @property
    def count(self) -> int:
        """Answers so far."""
        with self._lock:
            return sum(self.served.values())

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def wait(self, seconds: float) -> None:
        """Until there were enough."""
        for thread in self._threads:
            thread.join(seconds)
            assert not thread.is_alive(), f"after {seconds:g} s: {self.served}"

    def stop(self) -> None:
        """Begin no other request."""
        with self._lock:
            self._enough = 0

    def _turn(self) -> int | None:
        with self._lock:
            if self._begun >= self._enough:
                return None
            self._begun += 1
            return self._begun

    def _run(self, agent: Bearer) -> None:
        while (turn := self._turn()) is not None:
            kind, send = ("call", self._call) if turn % CALL_EACH == 0 else ("ready", self._ready)
            try:
                status = send(agent)
            except OSError as error:
                status = repr(error)
            with self._lock:
                self.served[kind] += 1
                if status != "200":
                    self.failures.append(f"{kind} {turn}: {status}")

    def _ready(self, _: Bearer) -> str:
        return ask(self.path, "GET", "/readyz", {})

    def _call(self, agent: Bearer) -> str:
        path = "/v1/actions/text_digest/execute"
        return ask(self.path, "POST", path, agent.headers("POST", path), json.dumps({"text": "x"}).encode())


@contextmanager
def load(gate: Installed, enough: int) -> Iterator[Load]:
    """Load, until the block ends."""
    running = Load(gate, enough)
    running.start()
    try:
        yield running
    finally:
        running.stop()
        running.wait(ANSWER_SECONDS)


def ask(path: str, method: str, target: str, headers: Head, body: bytes = b"") -> str:
    """One request on a connection of its own; the answer's status, and its body where that is not 200."""
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"{method} {target} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n{told}Content-Length: {len(body)}\r\n"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(ANSWER_SECONDS)
        sock.connect(path)
        sock.sendall(head.encode() + b"\r\n" + body)
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    status = answer[9:12].decode()
    return status if status == "200" else answer.decode(errors="replace") or "closed without an answer"


def in_background(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do something meanwhile; what it returns lands in the list."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    return thread, results


__all__ = ["PUBLIC_URL", "Load", "Prover", "ask", "in_background", "load"]
