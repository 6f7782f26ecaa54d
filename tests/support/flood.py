"""A hostile agent as a process of its own: calls that never send their body, and calls as fast as they are answered.

`python -m tests.support.flood` reads one job as JSON on standard input, takes a lease, opens everything, says `ready`,
and goes on until its standard input ends; then it prints how often it heard each status.
"""

import json
import select
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.identity import Identity

LIMIT = 120.0


class Flood:
    """`job`: address [host, port], base_url, path, body, slow and fast (how many connections of each)."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.identity = Identity()
        self.heard: Counter[int] = Counter()
        lease = json.dumps({"scopes": ["tools:call"], "dpop_jwk": self.identity.jwk}).encode()
        with self.connected() as sock:
            sock.sendall(self.head("/v1/leases", len(lease), signed=False) + lease)
            self.identity.token = json.loads(sock.recv(65536).partition(b"\r\n\r\n")[2])["lease_jwt"]

    def connected(self) -> socket.socket:
        """Open one more connection."""
        return socket.create_connection(tuple(self.job["address"]), timeout=LIMIT)

    def head(self, path: str, length: int, *, signed: bool = True) -> bytes:
        """The head of a POST."""
        lines = [
            f"POST {path} HTTP/1.1",
            "Host: localhost",
            "Content-Type: application/json",
            f"Content-Length: {length}",
        ]
        if signed:
            proof = self.identity.proof("POST", self.job["base_url"] + path)
            lines += [f"Authorization: DPoP {self.identity.token}", f"DPoP: {proof}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def send(self, sock: socket.socket) -> None:
        """One whole call."""
        body = json.dumps(self.job["body"]).encode()
        sock.sendall(self.head(self.job["path"], len(body)) + body)

    def said(self, sock: socket.socket) -> bytes:
        """An answer; nothing where the connection was closed or cut."""
        try:
            return sock.recv(65536)
        except ConnectionResetError:
            return b""

    def run(self) -> None:
        """Until the end of standard input."""
        slow = [self.connected() for _ in range(self.job["slow"])]
        for sock in slow:
            sock.sendall(self.head(self.job["path"], 1000) + b"{")
        fast = [self.connected() for _ in range(self.job["fast"])]
        for sock in fast:
            self.send(sock)
        print("ready", flush=True)
        while True:
            if select.select([sys.stdin], [], [], 0)[0]:
                break
            for sock in select.select([*fast, *slow], [], [], 0.05)[0]:
                data = self.said(sock)
                if data:
                    self.heard[int(data[9:12])] += 1
                if sock in fast and data:
                    self.send(sock)
                elif sock in slow:  # answered before its body came, or closed: begin again
                    slow.remove(sock)
                    sock.close()
                    slow.append(self.connected())
                    slow[-1].sendall(self.head(self.job["path"], 1000) + b"{")
        for sock in (*slow, *fast):
            sock.close()


@contextmanager
def flooding(base_url: str, public_base_url: str, path: str, body: Any, **counts: int) -> Iterator[Counter[int]]:
    """Flood until the block ends; then what was handed out says what the flood heard."""
    host, _, port = base_url.removeprefix("http://").rpartition(":")
    job = {"address": [host, int(port)], "base_url": public_base_url, "path": path, "body": body} | counts
    heard: Counter[int] = Counter()
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.flood"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
            yield heard
            process.stdin.close()
            heard.update({int(status): count for status, count in json.loads(process.stdout.readline()).items()})
        finally:
            process.kill()


if __name__ == "__main__":
    flood = Flood(json.loads(sys.stdin.readline()))
    flood.run()
    print(json.dumps(flood.heard), flush=True)
