"""What is measured: floors and a gateway, each started as a process and ended whatever happens."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bench.measures import wait_until
from contrib.demo.cast import Operator

START_SECONDS = 120.0
JOB_SECONDS = 600


@dataclass
class Subject:
    """Something that answers HTTP."""

    address: tuple[str, int]
    base_url: str
    pid: int

    def load(self, mode: str, path: str, body: str, connections: int, requests: int) -> dict[str, Any]:
        """Run one job of the load generator against it."""
        job = {
            "address": self.address, "base_url": self.base_url, "mode": mode, "path": path, "body": body,
            "connections": connections, "requests": requests, "warmup": max(requests // 10, 50),
            "pid": self.pid,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "bench.load"], input=json.dumps(job).encode(), capture_output=True,
            timeout=JOB_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode()[-2000:])
        found: dict[str, Any] = json.loads(done.stdout)
        return found


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
            yield Subject(listening.getsockname(), "http://floor", process.pid)
        finally:
            process.kill()
            process.wait(10)


@dataclass
class Gate(Subject):
    """A running dev gateway."""

    operator: Operator
    state: Path


@contextmanager
def gate(folder: Path | None = None, more: str = "") -> Iterator[Gate]:
    """`gateway dev`; `folder` keeps a prepared state directory, `more` is configuration."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as temporary:
        home = folder or Path(temporary)
        config = Path(temporary) / "gateway.toml"
        # One session of the load generator stands for many agents.
        config.write_text(f"{more}\n[limits]\nsession_requests_per_second = 100000\n")
        command = [str(Path(sys.executable).with_name("gateway")), "dev", "--listen", "127.0.0.1:0"]
        command += ["--state-dir", str(home / "state"), "--config", str(config)]
        with (Path(temporary) / "gateway.log").open("wb") as errors:
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
                raise RuntimeError((Path(temporary) / "gateway.log").read_text()[-3000:])
            yield from _serving(json.loads(line), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
            process.stdout.close()


def _serving(ready: dict[str, Any], pid: int) -> Iterator[Gate]:
    host, _, port = ready["base_url"].removeprefix("http://").rpartition(":")
    found = ready["operator"]
    key = serialization.load_pem_private_key(Path(found["private_key_file"]).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with httpx.Client(base_url=ready["base_url"], timeout=JOB_SECONDS) as http:
        operator = Operator(http, ready["public_base_url"], found["key"], key)
        wait_until(lambda: http.get("/readyz").status_code == 200, "a ready gateway")
        yield Gate((host, int(port)), ready["public_base_url"], pid, operator, Path(ready["state_dir"]))
