"""The load generator: a process of its own that signs every proof before its clock starts.

Reads one job as JSON on standard input, prints one result as JSON. Connections are keep-alive, each has one request in
flight, all are served by one loop over raw sockets. Proofs are signed in batches young enough for their window; the
clock runs only while a batch is on the wire.
"""

import base64
import hashlib
import json
import selectors
import socket
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from bench.measures import cpu_by_kind, family, quantile

BATCH_SECONDS = 20.0
"""A proof is at most this old when it is sent."""
ANSWER_SECONDS = 60.0


class Job(msgspec.Struct):
    """What to do. `mode`: execute (lease and proof per request), echo (same bytes, no lease taken) or get."""

    address: tuple[str, int]
    base_url: str
    mode: str
    path: str
    body: str
    connections: int
    requests: int
    warmup: int
    pid: int
    """Of the subject; all processes below it belong to it, those that start meanwhile too."""
    expect: int = 200


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Identity:
    """A key and the token that is bound to it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        x, y = (b64(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        self.jwk = {"kty": "EC", "crv": "P-256", "x": x, "y": y}
        self._head = b64(msgspec.json.encode({"typ": "dpop+jwt", "alg": "ES256", "jwk": self.jwk}))
        self.token = b64(hashlib.sha512(self._head.encode()).digest() * 8)

    def proof(self, method: str, url: str) -> str:
        """A fresh proof."""
        ath = b64(hashlib.sha256(self.token.encode()).digest())
        claims = {"jti": str(uuid.uuid4()), "htm": method, "htu": url, "iat": int(time.time()), "ath": ath}
        text = f"{self._head}.{b64(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


@dataclass
class Connection:
    """One connection with the requests it still has to send."""

    sock: socket.socket
    identity: Identity
    unsent: list[bytes] = field(default_factory=list)
    sent_at: float = 0.0
    buffer: bytes = b""

    def send_next(self) -> None:
        """Send the next request whole: it fits into the socket's buffer."""
        self.buffer = b""
        request = self.unsent.pop()
        self.sent_at = time.perf_counter()
        self.sock.sendall(request)

    def answer(self) -> int | None:
        """Status of the answer once it is whole, else None."""
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.buffer += data
        head, gap, body = self.buffer.partition(b"\r\n\r\n")
        if not gap:
            return None
        at = head.lower().index(b"content-length:") + 15
        length = int(head[at:].split(b"\r", 1)[0])
        return int(head[9:12]) if len(body) >= length else None


def ask(job: Job, method: str, path: str, body: bytes) -> dict[str, Any]:
    """One request outside the measurement."""
    with socket.create_connection(job.address, timeout=ANSWER_SECONDS) as sock:
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        sock.sendall(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        raw = b""
        while chunk := sock.recv(65536):
            raw += chunk
    found: dict[str, Any] = json.loads(raw.partition(b"\r\n\r\n")[2])
    return found


def take_leases(job: Job, connections: list[Connection]) -> None:
    """One lease a connection, below the rate of the interface."""
    for connection in connections:
        body = json.dumps({"scopes": ["tools:call"], "dpop_jwk": connection.identity.jwk}).encode()
        connection.identity.token = ask(job, "POST", "/v1/leases", body)["lease_jwt"]
        time.sleep(0.025)


def prepared(job: Job, identity: Identity) -> bytes:
    """The bytes of one request."""
    method = "GET" if job.mode == "get" else "POST"
    lines = [f"{method} {job.path} HTTP/1.1", "Host: bench"]
    if job.mode != "get":
        lines += [f"Authorization: DPoP {identity.token}", f"DPoP: {identity.proof('POST', job.base_url + job.path)}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(job.body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n" + (job.body if method == "POST" else "")).encode()


def run_batch(job: Job, connections: list[Connection], count: int) -> tuple[float, list[float], dict[int, int]]:
    """Send `count` requests over all connections: (seconds, latencies, answers by status)."""
    for number in range(count):
        connection = connections[number % len(connections)]
        connection.unsent.append(prepared(job, connection.identity))
    latencies: list[float] = []
    codes: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection.sock, selectors.EVENT_READ, connection)
        started = time.perf_counter()
        for connection in connections:
            if connection.unsent:
                connection.send_next()
        while len(latencies) < count:
            ready = selector.select(ANSWER_SECONDS)
            if not ready:
                raise TimeoutError("no answer")
            for key, _ in ready:
                connection = key.data
                code = connection.answer()
                if code is None:
                    continue
                latencies.append(time.perf_counter() - connection.sent_at)
                codes[code] = codes.get(code, 0) + 1
                if connection.unsent:
                    connection.send_next()
        return time.perf_counter() - started, latencies, codes


def run(job: Job) -> dict[str, Any]:
    """The whole job: warm up, then batches until all requests are sent."""
    connections = [
        Connection(socket.create_connection(job.address, timeout=ANSWER_SECONDS), Identity())
        for _ in range(job.connections)
    ]
    if job.mode == "execute":
        take_leases(job, connections)
    seconds, _, _ = run_batch(job, connections, max(job.warmup, job.connections))
    rate = max(job.warmup, job.connections) / seconds
    total, latencies, codes, used = 0.0, list[float](), dict[int, int](), dict[str, float]()
    left = job.requests
    while left > 0:
        count = min(left, max(int(rate * BATCH_SECONDS), job.connections))
        # Signing happens between the two readings too, but costs the server nothing.
        before = cpu_by_kind(family(job.pid))
        seconds, more, answered = run_batch(job, connections, count)
        for kind, after in cpu_by_kind(family(job.pid)).items():
            used[kind] = used.get(kind, 0.0) + after - before.get(kind, 0.0)
        total += seconds
        latencies += more
        for code, times in answered.items():
            codes[code] = codes.get(code, 0) + times
        left -= count
    for connection in connections:
        connection.sock.close()
    if set(codes) != {job.expect}:
        raise RuntimeError(f"{job.mode} {job.path} answered {codes}")
    latencies.sort()
    return {
        "per_second": len(latencies) / total,
        "p50_ms": quantile(latencies, 0.5) * 1000,
        "p99_ms": quantile(latencies, 0.99) * 1000,
        "cpu_us": {kind: seconds / len(latencies) * 1e6 for kind, seconds in used.items()},
        "cpu_us_all": sum(used.values()) / len(latencies) * 1e6,
        "requests": len(latencies),
    }


if __name__ == "__main__":
    print(json.dumps(run(msgspec.json.decode(sys.stdin.buffer.read(), type=Job))))
