"""The parties of the demo: a gateway, an agent in a process of its own, an operator. All over the public interface."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from contrib.demo.proofs import signed_headers
from contrib.demo.upstream import World, world

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "actions"
START_SECONDS = 300.0
ANSWER_SECONDS = 120.0
"""Bounds for a machine that is slow or busy; on any other they are never reached."""
STOP_SECONDS = 60.0
CALL_SECONDS = 600
"""Time limit of the demo's actions: long enough for a call to be interrupted."""
BUSY_SECONDS = 0.1
"""Processor time that only a worker in the middle of a call uses."""


class Agent:
    """The agent's process, spoken to a line at a time."""

    def __init__(self, base_url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "contrib.demo.agent", base_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, what: str, **more: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self.begin(what, **more)
        return self.answer()

    def begin(self, what: str, **more: Any) -> None:
        """Send one command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for the answer of the command sent last; the agent is ended when it takes too long."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(ANSWER_SECONDS, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise RuntimeError("the agent gave no answer")
        message: dict[str, Any] = json.loads(line)
        return message

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
        self._process.stdout.close()


@dataclass
class DemoOperator:
    """A person with a key; speaks HTTP with nothing but a proof."""

    http: httpx.Client
    base: str
    api_key: str
    key: ec.EllipticCurvePrivateKey

    def get(self, path: str) -> Any:
        """The JSON answer of a GET; raises for an error status."""
        return self._ask("GET", path)

    def post(self, path: str, body: Any = None) -> Any:
        """The JSON answer of a POST; raises for an error status."""
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = signed_headers(self.key, self.api_key, method, self.base + path)
        answer = self.http.request(method, path, headers=headers, json=body)
        answer.raise_for_status()
        return answer.json()


@dataclass
class Cast:
    """Everybody."""

    gateway: subprocess.Popen[str]
    ready: dict[str, Any]
    world: World
    agent: Agent
    operator: DemoOperator
    http: httpx.Client

    @property
    def state(self) -> Path:
        """The gateway's state directory."""
        return Path(self.ready["state_dir"])

    def busy_worker(self) -> psutil.Process:
        """The computing worker that is using the processor now."""
        before = self._computing()
        deadline = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < deadline:
            for pid, seconds in self._computing().items():
                if seconds - before.setdefault(pid, seconds) >= BUSY_SECONDS:
                    return psutil.Process(pid)
            time.sleep(0.02)
        raise RuntimeError("no worker computes")

    def _computing(self) -> dict[int, float]:
        return {
            process.pid: sum(process.cpu_times()[:2])
            for process in psutil.Process(self.gateway.pid).children(recursive=True)
            if " ".join(process.cmdline()).startswith("gateway: worker compute")
        }


def _patient_actions(folder: Path) -> Path:
    """A copy of the example actions whose calls may take CALL_SECONDS."""
    folder.mkdir()
    for example in EXAMPLES.glob("*.yaml"):
        text = re.sub(r"timeout_seconds: \d+", f"timeout_seconds: {CALL_SECONDS}", example.read_text())
        (folder / example.name).write_text(text)
    return folder


def _start(folder: Path, world_address: str, log: Path) -> subprocess.Popen[str]:
    config = folder / "gateway.toml"
    config.write_text(
        f'manifests_dir = "{_patient_actions(folder / "actions")}"\n'
        f'[egress]\nunsafe_resolve = {{"upstream.gateway.test" = "{world_address}"}}\n'
    )
    command = [str(Path(sys.executable).with_name("gateway")), "dev", "--listen", "127.0.0.1:0"]
    command += ["--state-dir", str(folder / "state"), "--config", str(config)]
    with log.open("wb") as errors:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True, env=dict(os.environ)
        )


@contextmanager
def assembled(folder: Path) -> Iterator[Cast]:
    """Start everybody; end everybody, whatever happened."""
    log = folder / "gateway.log"
    with world() as outside:
        gateway = _start(folder, outside.address, log)
        try:
            yield from _with_gateway(gateway, outside, log)
        finally:
            if gateway.poll() is None:
                gateway.send_signal(signal.SIGTERM)
                try:
                    gateway.wait(START_SECONDS)
                except subprocess.TimeoutExpired:
                    gateway.kill()
                    gateway.wait(STOP_SECONDS)
            assert gateway.stdout is not None
            gateway.stdout.close()


def _with_gateway(gateway: subprocess.Popen[str], outside: World, log: Path) -> Iterator[Cast]:
    assert gateway.stdout is not None
    watchdog = threading.Timer(START_SECONDS, gateway.kill)
    watchdog.start()
    line = gateway.stdout.readline()
    watchdog.cancel()
    if not line:
        raise RuntimeError(f"the gateway did not start:\n{log.read_text()[-3000:]}")
    ready = json.loads(line)
    credential = ready["operator"]
    key = serialization.load_pem_private_key(Path(credential["private_key_file"]).read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    with httpx.Client(base_url=ready["base_url"], timeout=ANSWER_SECONDS) as http:
        agent = Agent(ready["base_url"])
        try:
            operator = DemoOperator(http, ready["public_base_url"], credential["key"], key)
            yield Cast(gateway, ready, outside, agent, operator, http)
        finally:
            agent.close()
