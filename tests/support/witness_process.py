"""A real `gateway witness run` for tests, and gateways that it is a witness of."""

import os
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.gateway import ANSWER_SECONDS, START_SECONDS, STOP_SECONDS, wait_for
from tests.support.ports import free_port
from tests.support.processes import GATEWAY
from witness.folder import held, make_key

PATH = "/add-checkpoint"


def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """`gateway witness` to its end."""
    command = [GATEWAY, "witness", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=False
    )


class WitnessProcess:
    """One witness in its folder, on a port that stays its own; killed or stopped, it may be started again."""

    def __init__(self, folder: Path, name: str = "witness.example/w") -> None:
        self.folder = folder
        self.state = folder / "witness"
        self.log_keys = folder / "log.keys"
        self.log = folder / "witness.log"
        self.port = free_port()
        with held(self.state):
            self.key = make_key(self.state, name).public.text
        self.process: subprocess.Popen[bytes] | None = None
        self._scheme = "http"
        self._verify: ssl.SSLContext | bool = False

    def trusts(self, certificate: Path) -> None:
        """Ask it by TLS from now on, and trust this certificate."""
        self._scheme = "https"
        self._verify = ssl.create_default_context(cafile=str(certificate))

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self, *more: str) -> None:
        """Start it, and wait until it answers."""
        command = [
            GATEWAY, "witness", "run", "--state", str(self.state), "--listen", self.address, "--log-key",
            str(self.log_keys), *more,
        ]  # fmt: skip
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        wait_for(self._answers, f"a witness; its log: {self.log.read_text()}")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self._ask("GET", "/").status_code == 404
        except httpx.TransportError:
            return False

    def add(self, body: bytes) -> httpx.Response:
        """Ask for a cosignature."""
        return self._ask("POST", PATH, body)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> httpx.Response:
        url = f"{self._scheme}://{self.address}{path}"
        return httpx.request(method, url, content=body, timeout=ANSWER_SECONDS, verify=self._verify)

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """End it; its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(sig)
        return self.process.wait(STOP_SECONDS)


@contextmanager
def witness_process(folder: Path) -> Iterator[WitnessProcess]:
    """A witness that is not started yet; it is gone when the block ends."""
    folder.mkdir(exist_ok=True)
    os.chmod(folder, 0o700)
    witness = WitnessProcess(folder)
    try:
        yield witness
    finally:
        if witness.process is not None:
            witness.stop(signal.SIGKILL)


def witnessed_config(witness: WitnessProcess, more: str = "") -> str:
    """The configuration of a gateway that this one is a witness of. Its log has one name, whatever its port is."""
    return f"""
{more}
[egress]
unsafe_resolve = {{"witness.gateway.test" = "{witness.address}"}}

[evidence]
witness_interval_seconds = 0.1

[[evidence.witnesses]]
name = "city"
url = "http://witness.gateway.test"
key = "{witness.key}"
"""
