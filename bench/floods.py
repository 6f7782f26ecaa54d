"""A polite agent beside each flood of another user of the host: its p50 and p99 as ratios to those without the flood.

Both are measured in one run, in turns, over the Unix socket that tells users apart; each flood is a process of its own
user. Needs root, which may become another user. `python -m bench.floods` is a flood: it reads its job as JSON.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.backends import Backends
from bench.connections import Connection, connected, take_lease
from bench.generator import BODY, EXECUTE
from bench.identity import Identity
from bench.measures import quantile
from bench.report import table
from bench.servers import REPOSITORY
from bench.subjects import Gate, gate

FLOODS: Final[dict[str, dict[str, Any]]] = {
    "pipelined manifests, 300 connections": {"get": "/v1/actions/text_digest", "connections": 300, "ahead": 20},
    "/readyz": {"get": "/readyz", "connections": 8, "ahead": 1},
    "leases": {"leases": True, "connections": 8, "ahead": 1},
    "calls of 8 kB, 10 sessions": {"body": json.dumps({"text": "x" * 8000}), "connections": 10, "ahead": 1},
    "lists of empty lists, 20 sessions": {
        "body": json.dumps({"text": [[]] * 2000}), "connections": 20, "ahead": 1,
    },
}  # fmt: skip
"""The load of each flood: the number of connections, and the requests that each sends ahead of its answers."""
BOUND: Final = 3.0
"""p99 beside ÷ p99 alone, to reach."""
FLOOD_UID: Final = 65533
CALLS: Final = 300
"""Calls of the polite agent, with and without each flood: p99 is the third worst, and not the worst alone."""
PAUSE_SECONDS: Final = 0.02
_TABLES = """\
[identity]
provider = "peercred"
[identity.peercred.principals.{own}]
principal = "polite"
scopes = ["tools:call"]
[identity.peercred.principals.{other}]
principal = "flood"
scopes = ["tools:call"]
"""


def beside_floods() -> str:
    """Measure each flood; a table for people. Raises PermissionError without root."""
    if os.geteuid() != 0:
        raise PermissionError("--floods needs root: a flood runs as another user")
    rows = [("polite agent", "p50, ms", "p99, ms", "p50 ÷ alone", "p99 ÷ alone", "to reach")]
    with _gate() as (running, address):
        _polite(running, address)
        for name, job in FLOODS.items():
            alone = _polite(running, address)
            with _flood(job | {"address": address, "base_url": running.base_url}):
                beside = _polite(running, address)
            p50, p99 = (two / one for one, two in zip(alone, beside, strict=True))
            rows.append((name, f"{beside[0]:.1f}", f"{beside[1]:.1f}", f"{p50:.1f}", f"{p99:.1f}", f"<= {BOUND:.0f}"))
    return "\n".join(table(rows))


@contextmanager
def _gate() -> Iterator[tuple[Gate, str]]:
    with tempfile.TemporaryDirectory(prefix="gateway-floods-") as name:
        folder, contrib = Path(name), REPOSITORY / "contrib"
        folder.chmod(0o755)
        for made in ("actions", "policy", "run"):
            (folder / made).mkdir(mode=0o755)
        (folder / "actions" / "text_digest.yaml").write_text(
            (contrib / "examples" / "actions" / "text_digest.yaml").read_text()
        )
        (folder / "policy" / "gateway.rego").write_text((contrib / "policy" / "gateway.rego").read_text())
        granted = {"actions": ["text_digest"]}
        acl = {"policy_version": "1", "acl": {"polite": granted, "flood": granted}, "allowlist": {}}
        (folder / "policy" / "data.json").write_text(json.dumps(acl | {"denied_actions": {}}))
        address = str(folder / "run" / "gate.sock")
        top = f'manifests_dir = "actions"\npolicy_dir = "policy"\nlisten_uds_path = "{address}"\n'
        tables = _TABLES.format(own=os.geteuid(), other=FLOOD_UID)
        with gate(folder, backends=Backends(top, tables)) as running:
            os.chmod(address, 0o666)
            yield running, address


def _polite(running: Gate, address: str) -> tuple[float, float]:
    """p50 and p99 of an agent that calls and rests, in milliseconds."""
    identity, times = Identity(), []
    take_lease(address, identity)
    with closing(Connection(address, identity)) as connection:
        for _ in range(CALLS):
            request = identity.post(running.base_url, EXECUTE, BODY)
            began = time.perf_counter()
            if (status := connection.ask(request)) != 200:
                raise RuntimeError(f"the polite agent was answered {status}")
            times.append((time.perf_counter() - began) * 1000)
            time.sleep(PAUSE_SECONDS)
    return quantile(sorted(times), 0.5), quantile(sorted(times), 0.99)


@contextmanager
def _flood(job: dict[str, Any]) -> Iterator[None]:
    """A flood that has begun, until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.floods"], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the flood did not begin")
        yield
    finally:
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()


# ------------------------------------------------------------------ the process of a flood


def main() -> None:
    """Flood until killed."""
    job = json.loads(sys.stdin.readline())
    os.setresgid(FLOOD_UID, FLOOD_UID, FLOOD_UID)
    os.setresuid(FLOOD_UID, FLOOD_UID, FLOOD_UID)
    identities = [Identity() for _ in range(job["connections"])]
    if "body" in job:
        for identity in identities:
            take_lease(job["address"], identity)
            time.sleep(0.025)
    sockets = {(sock := connected(job["address"])).fileno(): (sock, identity) for identity in identities}
    with select.epoll() as poll:
        for descriptor, (sock, identity) in sockets.items():
            poll.register(descriptor, select.EPOLLIN)
            sock.sendall(b"".join(_request(job, identity) for _ in range(job["ahead"])))
        print("ready", flush=True)
        while True:
            for descriptor, _ in poll.poll(1.0):
                sock, identity = sockets[descriptor]
                with contextlib.suppress(ConnectionError):
                    answers = sock.recv(1 << 16).count(b"HTTP/1.1 ")
                    sock.sendall(b"".join(_request(job, identity) for _ in range(answers)))


def _request(job: dict[str, Any], identity: Identity) -> bytes:
    if "get" in job:
        return f"GET {job['get']} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    if "leases" in job:
        body = json.dumps({"scopes": ["tools:call"], "dpop_jwk": identity.jwk})
        head = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    return identity.post(job["base_url"], EXECUTE, job["body"])


if __name__ == "__main__":
    main()
