"""The load generator: a process of its own, so that the client's work is never in the way of the one that measures.

Reads jobs as lines of JSON on standard input and prints one line of JSON for each. Every proof is signed before the
clock starts, and is younger than its window when it is sent. Around the clock it reads the processor time of the
subject's processes, and its own, which tells whether it was the bottleneck itself.
"""

import gc
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec

from bench.connections import Connection, Window, exchange, take_lease
from bench.identity import Identity
from bench.measures import families, quantile, spent, usage_of

LEASE_SECONDS = 200.0
"""A lease is renewed when it is older: well below what a gateway gives by default."""
LEASE_PAUSE = 0.025
"""Keeps leases below the rate limit of the interface."""
LONGEST_WINDOW = 20.0
"""A proof is at most this old when it is sent."""


class Job(msgspec.Struct, forbid_unknown_fields=True):
    """One measurement. `mode`: execute (lease and a proof a request), echo (same size of bytes, no lease) or get."""

    address: tuple[str, int]
    base_url: str
    mode: str
    path: str
    body: str
    connections: int
    seconds: float
    pids: tuple[int, ...]
    """Pids of the subject and of servers beside it. All below them belong to it, those that start meanwhile too."""
    calls: int = 0
    """At most this many calls; 0 for as many as the seconds allow."""
    warmup: int = 50
    """Calls before the clock starts."""
    expect: int = 200
    may_refuse: bool = False
    """503 is counted, as `refused`, where it otherwise ends the job."""
    has_keys: bool = False
    """Each request has an idempotency key of its own."""


@dataclass
class Agents:
    """The identities that call one subject, and what is known of its rate."""

    identities: list[Identity] = field(default_factory=list)
    leased_at: list[float] = field(default_factory=list)
    rates: dict[tuple[str, int], float] = field(default_factory=dict)
    """Calls per second seen last, by mode and connections."""

    def ready(self, job: Job) -> list[Identity]:
        """One identity for each connection of the job, with a lease if it needs one."""
        while len(self.identities) < job.connections:
            self.identities.append(Identity())
            self.leased_at.append(-LEASE_SECONDS)
        for number, identity in enumerate(self.identities[: job.connections]):
            now = time.monotonic()
            if job.mode == "execute" and now - self.leased_at[number] >= LEASE_SECONDS:
                take_lease(job.address, identity)
                self.leased_at[number] = now
                time.sleep(LEASE_PAUSE)
        return self.identities[: job.connections]


def requests_of(job: Job, identity: Identity, count: int) -> list[bytes]:
    """The bytes of this many requests. Floors check no proof, so one does for all."""
    if job.mode == "get":
        return [f"GET {job.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()] * count
    if job.mode == "echo":
        return [identity.post(job.base_url, job.path, job.body)] * count
    return [
        identity.post(job.base_url, job.path, job.body, (f"Idempotency-Key: {uuid4()}",) if job.has_keys else ())
        for _ in range(count)
    ]


def run(job: Job, agents: Agents) -> dict[str, Any]:
    """The whole job: leases, warm-up, one window. Raises RuntimeError for an answer that was not expected."""
    connections = [Connection(job.address, identity) for identity in agents.ready(job)]
    key = (job.mode, job.connections)
    try:
        if job.warmup:
            prepare(job, connections, max(job.warmup, job.connections))
            warm = exchange(connections, LONGEST_WINDOW)
            agents.rates[key] = max(agents.rates.get(key, 0.0), warm.answered / warm.seconds)
        seconds = min(job.seconds, LONGEST_WINDOW)
        # A warm-up underrates; requests that are signed and not sent only cost time before the clock.
        prepare(job, connections, job.calls or int(agents.rates[key] * seconds * 1.3) + job.connections)
        before = usage_of(families(job.pids))
        window = exchange(connections, seconds)
        used = spent(before, usage_of(families(job.pids)))
    finally:
        for connection in connections:
            connection.close()
    if not set(window.codes) <= {job.expect, *((503,) if job.may_refuse else ())}:
        raise RuntimeError(f"{job.mode} {job.path} answered {window.codes}")
    agents.rates[key] = window.answered / window.seconds
    refused = window.codes.get(503, 0) / len(window.latencies)
    found = figures(window, used)
    return found | {"refused": refused, "served_per_second": found["per_second"] * (1 - refused)}


def prepare(job: Job, connections: list[Connection], count: int) -> None:
    """Give every connection its part of this many requests."""
    share = -(-count // len(connections))
    for connection in connections:
        connection.unsent = requests_of(job, connection.identity, share)


def figures(window: Window, used: dict[str, float]) -> dict[str, Any]:
    """The figures of a window: calls per second, times in ms, processor time in microseconds a call."""
    calls = len(window.latencies)
    latencies = sorted(window.latencies)
    return {
        "calls": calls,
        "per_second": window.answered / window.seconds,
        "p50_ms": quantile(latencies, 0.5) * 1000,
        "p99_ms": quantile(latencies, 0.99) * 1000,
        "cpu_us": {kind: seconds / calls * 1e6 for kind, seconds in used.items()},
        "cpu_us_all": sum(used.values()) / calls * 1e6,
        "client_cpu_us": window.client_seconds / calls * 1e6,
        "client_busy": window.client_seconds / calls * window.answered / window.seconds,
    }


def main() -> None:
    """Serve jobs until standard input ends. A job that fails is answered with its error."""
    agents: dict[tuple[str, int], Agents] = {}
    gc.disable()
    for line in sys.stdin.buffer:
        job = msgspec.json.decode(line, type=Job)
        try:
            answer = run(job, agents.setdefault(job.address, Agents()))
        except (OSError, RuntimeError) as error:
            answer = {"error": f"{job.mode} at {job.connections}: {type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
