"""The subjects of measurements: floors and gateways, each a process that is always ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench.backends import Backends
from bench.measures import wait_until
from contrib.demo.cast import DemoOperator
from ipc.process.exits import Exit

START_SECONDS = 120.0
ANSWER_SECONDS = 600.0
STOP_SECONDS = 60.0
EMBEDDED = Backends()


class RefusedError(Exception):
    """The gateway does not start with this configuration; says why."""


@dataclass
class Subject:
    """Something that answers HTTP. `mode` is how the load generator calls it."""

    address: tuple[str, int]
    base_url: str
    pid: int
    mode: str
    beside: tuple[int, ...] = field(default=(), kw_only=True)
    """Servers that work for it alone, and are counted with it."""


@contextmanager
def floor(kind: str) -> Iterator[Subject]:
    """One of bench/floors.py."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.floors", kind, "--fd", str(listening.fileno())],
            pass_fds=[listening.fileno()],
        )
        try:
            yield Subject(listening.getsockname(), "http://floor", process.pid, "echo")
        finally:
            process.kill()
            process.wait(10)


@dataclass
class Gate(Subject):
    """A running dev gateway."""

    operator: DemoOperator
    state: Path


@dataclass(frozen=True)
class Disk:
    """A disk whose flush takes longer by so many microseconds, and the library that makes it so."""

    library: Path
    microseconds: int

    def command(self) -> list[str]:
        """The command that starts the gateway on it."""
        return [sys.executable, "-m", "bench.start", str(self.library), str(self.microseconds)]


@contextmanager
def gate(
    folder: Path, *, fronts: int = 1, disk: Disk | None = None, backends: Backends = EMBEDDED
) -> Iterator[Gate]:  # fmt: skip
    """`gateway dev` with its state in `folder`, which may hold some already. Raises RefusedError."""
    config, log = folder / "gateway.toml", folder / "gateway.log"
    # One session of the load generator stands for many agents.
    more = f"front_processes = {fronts}\n" if fronts > 1 else ""
    config.write_text(f"{more}{backends.top}{backends.tables}[limits]\nsession_requests_per_second = 100000\n")
    command = disk.command() if disk else [str(Path(sys.executable).with_name("gateway"))]
    command += ["dev", "--listen", "127.0.0.1:0", "--no-upstream"]
    command += ["--state-dir", str(folder / "state"), "--config", str(config)]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=dict(os.environ)
        )
    assert process.stdout is not None
    watchdog = threading.Timer(START_SECONDS, process.kill)
    watchdog.start()
    line = process.stdout.readline()
    watchdog.cancel()
    try:
        if not line:
            text = " ".join(log.read_text()[-3000:].replace(f"{folder}/", "").split())
            raise RefusedError(text) if process.wait(STOP_SECONDS) == Exit.CONFIG else RuntimeError(text)
        yield from _serving(json.loads(line), process.pid, backends.pids)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        process.stdout.close()


@contextmanager
def fresh_gate(**more: Any) -> Iterator[Gate]:
    """A gateway whose state is a folder of its own, removed at the end; `more` as for `gate`. Raises RefusedError."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as folder, gate(Path(folder), **more) as running:
        yield running


def _serving(ready: dict[str, Any], pid: int, beside: tuple[int, ...]) -> Iterator[Gate]:
    host, _, port = ready["base_url"].removeprefix("http://").rpartition(":")
    credential = ready["operator"]
    key = serialization.load_pem_private_key(Path(credential["private_key_file"]).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with httpx.Client(base_url=ready["base_url"], timeout=ANSWER_SECONDS) as http:
        operator = DemoOperator(http, ready["public_base_url"], credential["key"], key)
        wait_until(lambda: http.get("/readyz").status_code == 200, "a ready gateway")
        state = Path(ready["state_dir"])
        yield Gate((host, int(port)), ready["public_base_url"], pid, "execute", operator, state, beside=beside)
