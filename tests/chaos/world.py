"""One gateway that is hurt: started, restarted in the same place, looked at from outside, and gone at the end."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.chaos.spoilt import Clock, Disk
from tests.support.gateway import ANSWER_SECONDS, Bearer, Prover, ready_line
from tests.support.manifests import PATIENT, REPOSITORY, example, open_policy, patient, write_manifests
from tests.support.ports import free_port

HOSTS = tuple(f"learned{number}.gateway.test" for number in range(8))
MOST_SECONDS = 120.0
"""For anything that has to happen at last, on whatever machine."""


class Failed(AssertionError):
    """An invariant does not hold."""


class Timed(Bearer):
    """A bearer by the clock of the world."""

    clock: Clock

    def headers(self, method: str, path: str, **changes: Any) -> dict[str, str]:
        return super().headers(method, path, **{"iat": int(self.clock.now())} | changes)


def _endpoint(name: str) -> str:
    """The table of a webhook that gets every event, with immediate retries."""
    secret = "a secret of a few words"
    return (
        f'[[webhooks]]\nname = "{name}"\nurl = "http://{name}.gateway.test/"\nsecret = "{secret}"\n'
        "retry_backoff_seconds = [0.1]\n"
    )


class World:
    """Folder, clock, disk, upstream address, and the supervisor's process of the moment."""

    def __init__(
        self, folder: Path, address: str, receiver: str, libraries: str, *, fronts: int, flush_us: int, is_root: bool
    ) -> None:
        self.folder, self.fronts = folder, fronts
        self.clock = Clock(folder)
        self.disk = Disk(folder / "state", is_small=is_root)
        self.state = folder / "state"
        self.log = folder / "gateway.log"
        self.starts = 0
        self._command = self._configured(address, receiver, [libraries, str(flush_us), str(self.clock.path)])
        self.process: subprocess.Popen[str]
        self.ready: dict[str, Any] = {}
        self.receipt_keys: Any = None
        self._key: ec.EllipticCurvePrivateKey

    def _configured(self, address: str, receiver: str, preloaded: list[str]) -> list[str]:
        actions = self.folder / "actions"
        top = patient(actions)
        any_host = example(
            "http_fetch", action_id="any_host", template={"url_template": "http://{host}/{+path}"},
            io={"request_schema": {"required": ["host", "path"], "properties": {"host": {"type": "string"}}}},
            **PATIENT,
        )  # fmt: skip
        write_manifests(actions, any_host)
        policy = open_policy(self.folder / "policy", "any_host")
        shutil.copy(policy / "data.json", self.folder / "data.json")
        resolve = "".join(f'"{host}" = "{address}"\n' for host in (*HOSTS, "upstream.gateway.test"))
        config = self.folder / "gateway.toml"
        config.write_text(
            f'front_processes = {self.fronts}\n{top}policy_dir = "{policy}"\n'
            "[limits]\nsession_requests_per_second = 100000\n"
            f"{_endpoint('living')}{_endpoint('dead')}"
            f'[egress.unsafe_resolve]\n"living.gateway.test" = "{receiver}"\n"dead.gateway.test" = "127.0.0.1:1"\n'
            f"{resolve}"
        )
        listen = ["--listen", f"127.0.0.1:{free_port()}", "--state-dir", str(self.state), "--config", str(config)]
        return [sys.executable, "-m", "tests.chaos.start", *preloaded, "dev", *listen]

    # ----------------------------------------------------------------- life

    def start(self) -> None:
        """Start the gateway, and wait until it serves."""
        self.starts += 1
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                cwd=REPOSITORY, start_new_session=True,
                env=os.environ | {"LD_PRELOAD": self._command[3], "GATEWAY_CHAOS_CLOCK": str(self.clock.path)},
            )  # fmt: skip
        self.ready = ready_line(self.process, self.log)
        if self.starts == 1:
            private_key = serialization.load_pem_private_key(
                Path(self.ready["operator"]["private_key_file"]).read_bytes(), None
            )  # fmt: skip
            assert isinstance(private_key, ec.EllipticCurvePrivateKey)
            self._key = private_key

    def again(self, *, expected: tuple[int, ...]) -> None:
        """Wait for the end, which must be one of these exit codes, and start anew."""
        self.wait_end(expected)
        self.start()

    def wait_end(self, expected: tuple[int, ...]) -> None:
        """Wait for the end of the supervisor and of everything below it."""
        try:
            code = self.process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failed("the gateway did not stop") from None
        assert self.process.stdout is not None
        self.process.stdout.close()
        if code not in expected:
            raise Failed(f"the gateway ended with {code}, not with one of {expected}")
        self.wait(lambda: not left_behind(), "the end of every process of a gateway that has ended")

    def end(self) -> None:
        """Stop and remove everything, after any failure."""
        for process in psutil.Process().children(recursive=True):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if hasattr(self, "process"):
            self.process.wait(MOST_SECONDS)
            assert self.process.stdout is not None
            self.process.stdout.close()
        left_behind()
        self.disk.close()
        self.clock.close()

    # ----------------------------------------------------------------- clients

    def operator(self, http: httpx.Client) -> Timed:
        """The operator that the first start made."""
        base, key = self.ready["public_base_url"], self.ready["operator"]["key"]
        return self._timed(http, base, key, Prover(self._key))

    def agent(self, http: httpx.Client, max_calls: int | None = None) -> Timed | None:
        """A new lease on a new key; None when it is not given at the moment. Raises httpx.TransportError."""
        prover = Prover()
        body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
        if max_calls is not None:
            body["budgets"] = {"max_calls": max_calls}
        answer = http.post("/v1/leases", json=body)
        if answer.status_code != 200:
            return None
        agent = self._timed(http, self.ready["public_base_url"], answer.json()["lease_jwt"], prover)
        agent.session_id = answer.json()["session_id"]
        return agent

    def _timed(self, http: httpx.Client, base: str, token: str, prover: Prover) -> Timed:
        bearer = Timed(http, base, token, prover)
        bearer.clock = self.clock
        return bearer

    def http(self) -> httpx.Client:
        """A client of one thread."""
        return httpx.Client(base_url=self.ready["base_url"], timeout=ANSWER_SECONDS)

    def command(self, word: str) -> dict[str, Any] | None:
        """The supervisor's answer to `gateway WORD`, or None."""
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(MOST_SECONDS)
                sock.connect(str(self.state / "control.sock"))
                sock.sendall(json.dumps({"do": word}).encode() + b"\n")
                with sock.makefile("rb") as stream:
                    line = stream.readline()
        except OSError:
            return None
        return dict(json.loads(line)) if line else None

    # ----------------------------------------------------------------- processes

    def victims(self, kind: str) -> list[psutil.Process]:
        """The processes of a kind, in the order of their numbers."""
        if kind == "supervisor":
            return [psutil.Process(self.process.pid)]
        processes = []
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if " ".join(process.cmdline()).startswith(f"gateway: {kind}"):
                    processes.append(process)
            except psutil.Error:
                continue
        return sorted(processes, key=lambda process: process.pid)

    def signal(self, number: signal.Signals) -> None:
        """Signal the supervisor."""
        self.process.send_signal(number)

    @staticmethod
    def wait(condition: Callable[[], Any], what: str, seconds: float = MOST_SECONDS) -> Any:
        """Ask until true. Raises Failed with `what`."""
        deadline = time.monotonic() + seconds
        while not (answer := condition()):
            if time.monotonic() > deadline:
                raise Failed(f"waited {seconds:g} s for {what}")
            time.sleep(0.01)
        return answer


def left_behind() -> list[int]:
    """Processes below this one, which inherits orphans; ended ones are reaped."""
    living = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(process.pid, os.WNOHANG)
            else:
                living.append(process.pid)
        except (psutil.NoSuchProcess, ChildProcessError):
            continue
    return living
