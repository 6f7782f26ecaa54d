"""A real gateway for tests: `gateway dev` as a process, and the clients that speak to it.

Agents and operators here are written against the interface alone: nothing of the gateway's own code is imported, but
for its OpenAPI document, against which every answer is held.
"""

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tests.support.documented import check_answer
from tests.support.modules import give_modules, keep_modules
from tests.support.pace import Pace, Paces
from tests.support.readable import readable

PROGRAM = (str(Path(sys.executable).with_name("gateway")),)
START_SECONDS = 600
"""How long a start may take before it has failed. Like every deadline here it costs nothing when all is well."""
ANSWER_SECONDS = 120
STOP_SECONDS = 120
WAIT_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.01


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def as_documented(answer: httpx.Response) -> None:
    """The hook that each client here calls with each answer."""
    sent = answer.request
    path = sent.url.raw_path.decode("ascii").partition("?")[0]
    check_answer(sent.method, path, answer.status_code, answer.headers.get("content-type", ""), answer.read())
    assert answer.headers["x-trace-id"].startswith("trc_")


class Prover:
    """A P-256 key that signs proofs."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        numbers = self.key.public_key().public_numbers()
        self.jwk = {
            "kty": "EC",
            "crv": "P-256",
            "x": b64(numbers.x.to_bytes(32, "big")),
            "y": b64(numbers.y.to_bytes(32, "big")),
        }

    def proof(self, method: str, url: str, token: str, **changes: Any) -> str:
        """A fresh proof; `changes` replace claims."""
        claims = {
            "jti": str(uuid.uuid4()), "htm": method, "htu": url, "iat": int(time.time()),
            "ath": b64(hashlib.sha256(token.encode()).digest()),
        } | changes  # fmt: skip
        header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk}
        signed = ".".join(b64(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
        r, s = decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@dataclass
class Bearer:
    """The holder of a token and of the key it is bound to: an agent with a lease, or an operator."""

    http: httpx.Client
    base: str
    token: str
    prover: Prover
    session_id: str = ""
    reads: Pace | None = None
    writes: Pace | None = None

    def headers(self, method: str, path: str, **changes: Any) -> dict[str, str]:
        proof = self.prover.proof(method, self.base + path.split("?")[0], self.token, **changes)
        return {"Authorization": f"DPoP {self.token}", "DPoP": proof}

    def get(self, path: str) -> httpx.Response:
        if self.reads is not None:
            self.reads.wait()
        return self.http.get(path, headers=self.headers("GET", path))

    def post(self, path: str, body: Any = None) -> httpx.Response:
        if self.writes is not None:
            self.writes.wait()
        headers = self.headers("POST", path)
        return (
            self.http.post(path, headers=headers, json=body)
            if body is not None
            else self.http.post(path, headers=headers)
        )

    def execute(self, action_id: str, body: Any = None) -> httpx.Response:
        return self.post(f"/v1/actions/{action_id}/execute", {} if body is None else body)


@dataclass
class Gateway:
    """One running `gateway dev`."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]
    log: Path
    http: httpx.Client
    clients: list[httpx.Client] = field(default_factory=list)
    paces: Paces = field(default_factory=Paces)

    @property
    def base(self) -> str:
        return str(self.ready["public_base_url"])

    @property
    def state(self) -> Path:
        return Path(self.ready["state_dir"])

    def agent(self, max_calls: int | None = None, http: httpx.Client | None = None) -> Bearer:
        """A new lease on a new key."""
        prover = Prover()
        body: dict[str, Any] = {"scopes": ["tools:call"], "dpop_jwk": prover.jwk}
        if max_calls is not None:
            body["budgets"] = {"max_calls": max_calls}
        self.paces.leases.wait()
        answer = (http or self.http).post("/v1/leases", json=body)
        assert answer.status_code == 200, answer.text
        lease = answer.json()
        return Bearer(http or self.http, self.base, lease["lease_jwt"], prover, lease["session_id"])

    def operator(self) -> Bearer:
        """The operator that this gateway's start, or `gateway keys make`, made."""
        credential = self.ready["operator"]
        key = serialization.load_pem_private_key(Path(credential["private_key_file"]).read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        reads, writes = self.paces.reads, self.paces.writes
        return Bearer(self.operators, self.base, credential["key"], Prover(key), reads=reads, writes=writes)

    @property
    def operators(self) -> httpx.Client:
        """Where operators connect."""
        return self.http

    def over(self, socket_name: str) -> httpx.Client:
        """A client on one of the Unix sockets: client_socket or admin_socket."""
        client = httpx.Client(
            transport=httpx.HTTPTransport(uds=self.ready[socket_name], verify=False), base_url="http://localhost",
            timeout=ANSWER_SECONDS, event_hooks={"response": [as_documented]},
        )  # fmt: skip
        self.clients.append(client)
        return client

    def child(self, title: str) -> psutil.Process:
        """The only child process with a title that starts with `gateway: <title>`."""
        processes = self.children(title)
        assert processes, f"no process with the title gateway: {title}"
        return processes[0]

    def children(self, title: str = "") -> list[psutil.Process]:
        """The child processes with titles that start with `gateway: <title>`."""
        return [process for process, _ in self.titled(title)]

    def titled(self, title: str) -> list[tuple[psutil.Process, str]]:
        """The same with their whole titles. Without spares, which come once all is calm, and without what was forked a
        moment ago and still shows the title of its parent."""
        root = psutil.Process(self.process.pid)
        titles, processes = {root.pid: _title_of(root)}, []
        for process in root.children(recursive=True):
            with suppress(psutil.Error):
                parent, name = process.ppid(), _title_of(process)
                titles[process.pid] = name
                is_own = name != titles.get(parent) and not name.startswith("gateway: spare")
                if is_own and name.startswith(f"gateway: {title}"):
                    processes.append((process, name))
        return processes

    def lines(self) -> list[dict[str, Any]]:
        """The JSON lines of its log, without an unfinished last line."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1] if line.startswith("{")]

    def is_ready(self) -> bool:
        """Whether it says so; a connection to a front that has died is cut."""
        return self.answers("/readyz")

    def answers(self, path: str = "/healthz") -> bool:
        """Whether a front answers with 200; see `is_ready`."""
        try:
            return self.http.get(path).status_code == 200
        except httpx.TransportError:
            return False

    def events(self, **filters: Any) -> list[dict[str, Any]]:
        """Audit events by the operator's query, newest first."""
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        answer = self.operator().get(f"/v1/audit/events?{query}" if query else "/v1/audit/events")
        assert answer.status_code == 200, answer.text
        return list(answer.json()["events"])

    def stop(self, sig: int = signal.SIGTERM, seconds: float = STOP_SECONDS) -> int:
        """Signal the supervisor and wait."""
        if self.process.poll() is None:
            self.process.send_signal(sig)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
            raise AssertionError(f"the gateway did not stop; its log:\n{self.log.read_text()[-4000:]}") from None


@contextmanager
def gateway(
    folder: Path, config: str = "", *, program: Sequence[str] = PROGRAM, flags: Sequence[str] = (), **environment: str
) -> Iterator[Gateway]:  # fmt: skip
    """Run `gateway dev` in `folder` until the block ends. `config` is the text of a TOML file; `program` is what does
    as the command line; `flags` are added to it."""
    arguments = ["dev", "--listen", "127.0.0.1:0", "--state-dir", str(folder / "state"), "--no-upstream", *flags]
    if config:
        (folder / "gateway.toml").write_text(config)
        arguments += ["--config", str(folder / "gateway.toml")]
    give_modules(folder / "state")
    log = folder / "gateway.log"
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [*program, *arguments], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            env=os.environ | environment,
        )  # fmt: skip
    with gone_afterwards(process):
        ready = ready_line(process, log)
        with httpx.Client(
            base_url=ready["base_url"], timeout=ANSWER_SECONDS, verify=False, event_hooks={"response": [as_documented]}
        ) as http:
            running = Gateway(process, ready, log, http)
            keep_modules(running.state)
            with stopped_afterwards(running):
                yield running


@contextmanager
def gone_afterwards(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Kill the process at the end, if it still runs."""
    try:
        yield
    finally:
        if process.stdout is not None:
            process.stdout.close()
        if process.poll() is None:
            process.kill()
            process.wait(STOP_SECONDS)


@contextmanager
def stopped_afterwards(running: Gateway) -> Iterator[None]:
    """Stop the gateway at the end, after its clients are closed."""
    try:
        yield
    finally:
        for client in running.clients:
            client.close()
        running.stop()


def ready_line(process: "subprocess.Popen[str]", log: Path) -> dict[str, Any]:
    """The line that a gateway prints on standard output once it serves."""
    assert process.stdout is not None
    assert readable(process.stdout, START_SECONDS), f"no start; its log:\n{log.read_text()[-4000:]}"
    line = process.stdout.readline()
    assert line, f"the gateway ended with {process.wait(STOP_SECONDS)}; its log:\n{log.read_text()[-4000:]}"
    ready: dict[str, Any] = json.loads(line)
    return ready


def wait_for(condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """Ask until the answer is true; fail with `what` at the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}"
        time.sleep(LOOK_AGAIN_SECONDS)


def _title_of(process: psutil.Process) -> str:
    return " ".join(process.cmdline()).strip()


def config_for(address: str, more: str = "") -> str:
    """The configuration that sends the examples' upstream to `address`."""
    return f'{more}\n[egress]\nunsafe_resolve = {{"upstream.gateway.test" = "{address}"}}\n'
