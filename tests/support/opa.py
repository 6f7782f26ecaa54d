"""A real OPA for tests: `opa run --server` as a process, and what a test does with it.

It listens on a Unix socket or a port and keeps its data in memory, as one does that a gateway has beside it. Started
again it has lost what was pushed.
"""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.servers import RULES, opa_command
from tests.support.gateway import START_SECONDS, STOP_SECONDS, wait_for
from tests.support.go_programs import go_program
from tests.support.ports import free_port


class Opa:
    """One OPA. `files` are what it loads at each start: rules, data, bundles."""

    def __init__(
        self, folder: Path, files: Sequence[str], options: Sequence[str] = (), *, is_tcp: bool = False
    ) -> None:
        self._folder = folder
        self._files = files
        self._options = options
        self._socket = folder / "opa.sock"
        self._port = free_port() if is_tcp else 0
        self.url = f"http://127.0.0.1:{self._port}" if is_tcp else f"unix://{self._socket}"
        self.process: subprocess.Popen[bytes] | None = None
        self.is_up = False
        self.lock = threading.Lock()
        """Held by who asks it while it may be killed."""
        transport = httpx.HTTPTransport() if is_tcp else httpx.HTTPTransport(uds=str(self._socket))
        self.http = httpx.Client(
            transport=transport, base_url=self.url if is_tcp else "http://opa", timeout=START_SECONDS
        )

    def start(self) -> None:
        """Begin to serve; returns once it answers."""
        self._socket.unlink(missing_ok=True)
        address = f"127.0.0.1:{self._port}" if self._port else f"unix://{self._socket}"
        with (self._folder / "opa.log").open("ab") as log:
            self.process = subprocess.Popen(
                opa_command(address, self._files, self._options, go_program("opa")),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder,
            )  # fmt: skip
        wait_for(self._answers, "an OPA that answers", START_SECONDS)
        self.is_up = True

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self._folder / "opa.log").read_text()[-2000:]
        place = ("127.0.0.1", self._port) if self._port else str(self._socket)
        with socket.socket(socket.AF_INET if self._port else socket.AF_UNIX) as probe:
            if probe.connect_ex(place) != 0:
                return False
        return self.http.get("/health").status_code == 200

    def kill(self) -> None:
        """End it at once. Its pushed data is lost."""
        with self.lock:
            self.is_up = False
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
            self._socket.unlink(missing_ok=True)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """It is there and says nothing."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    @contextmanager
    def gone(self) -> Iterator[None]:
        """It has ended; afterwards another one serves in its place, which has lost all that was pushed."""
        self.kill()
        try:
            yield
        finally:
            self.start()

    def data(self, path: str) -> Any:
        """A document of its data, or None."""
        return self.http.get(f"/v1/data/{path}").json().get("result")

    def put_rules(self, text: str, name: str = "more.rego") -> None:
        """Load rules, as its own operator does."""
        answer = self.http.put(f"/v1/policies/{name}", content=text, headers={"Content-Type": "text/plain"})
        assert answer.status_code == 200, answer.text


@contextmanager
def opa(
    folder: Path, files: Sequence[str] = (str(RULES),), options: Sequence[str] = (), *, is_tcp: bool = False
) -> Iterator[Opa]:
    """Run one until the block ends; it has the default rules and no data."""
    folder.mkdir(parents=True, exist_ok=True)
    one = Opa(folder, files, options, is_tcp=is_tcp)
    try:
        one.start()
        yield one
    finally:
        one.kill()
        one.http.close()


def bundle(folder: Path, rules: str, revision: str | None) -> Path:
    """A bundle in a folder, whose rules are its own: it leaves our documents alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gateway.rego").write_text(rules)
    manifest: dict[str, Any] = {"roots": ["gateway"]}
    if revision is not None:
        manifest["revision"] = revision
    (folder / ".manifest").write_text(json.dumps(manifest))
    return folder
