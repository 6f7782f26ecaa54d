"""Further measurements of a running gateway, one after the other. Every function returns figures by name."""

import os
import signal
import statistics
import threading
import time
from contextlib import closing
from typing import Any

import httpx

from bench.connections import Connection, take_lease
from bench.generator import BODY, EXECUTE, Generator
from bench.identity import Identity
from bench.measures import family, kind_of, pss_by_kind, wait_until
from bench.subjects import ANSWER_SECONDS, Gate

RETRY_SECONDS = 0.001
"""Between two calls that were refused because no worker was there: a client that spins would slow down their start."""


def memory(gate: Gate) -> dict[str, float]:
    """Median PSS by kind of process, in MB; empty where the kernel does not show it to us."""
    sizes_by_kind = pss_by_kind(family(gate.pid))
    return {kind: statistics.median(sizes) / 1e6 for kind, sizes in sorted(sizes_by_kind.items())}


def after_a_kill(gate: Gate, times: int) -> dict[str, float]:
    """From SIGKILL of every computing worker to the end of the next call that is served; median of `times`."""
    served, killed = [], []
    identity = Identity()
    take_lease(gate.address, identity)
    with closing(Connection(gate.address, identity)) as connection:
        for _ in range(times):
            requests = [identity.post(gate.base_url, EXECUTE, BODY) for _ in range(100)]
            wait_until(lambda: computing(gate), "a computing worker")
            doomed = computing(gate)
            killed.append(len(doomed))
            started = time.perf_counter()
            for pid in doomed:
                os.kill(pid, signal.SIGKILL)
            while connection.ask(requests.pop()) != 200:
                time.sleep(RETRY_SECONDS)
            served.append(time.perf_counter() - started)
    return {"served_ms": statistics.median(served) * 1000, "workers_killed": statistics.median(killed)}


def computing(gate: Gate) -> set[int]:
    """The workers that compute."""
    return {pid for pid in family(gate.pid) if kind_of(pid) == "worker compute"}


def verification(gate: Gate) -> dict[str, float]:
    """Audit verification, in seconds per 100,000 events; the best of three."""
    taken, count = [], 0
    for _ in range(3):
        started = time.perf_counter()
        report = gate.operator.get("/v1/audit/verify")
        taken.append(time.perf_counter() - started)
        count = report["events_checked"]
        if not report["intact"]:
            raise RuntimeError(f"the chain is broken at {report['broken_at']}")
    return {"events": count, "seconds_per_100k": min(taken) / count * 100_000}


def beside_verification(gate: Gate, generator: Generator, seconds: float, rounds: int) -> dict[str, float]:
    """p99 of calls at 8 connections while the whole chain is verified again and again ÷ without; median of `rounds`."""
    ratios = []
    for _ in range(rounds):
        quiet = generator.calls(gate, 8, seconds)["p99_ms"]
        stop = threading.Event()
        reader = threading.Thread(target=_verify_until, args=(gate, stop))
        reader.start()
        busy = generator.calls(gate, 8, seconds)["p99_ms"]
        stop.set()
        reader.join(ANSWER_SECONDS)
        ratios.append(busy / quiet)
    return {"p99_ratio": statistics.median(ratios)}


def _verify_until(gate: Gate, stop: threading.Event) -> None:
    while not stop.is_set():
        gate.operator.get("/v1/audit/verify")


def health(gate: Gate, generator: Generator, seconds: float) -> dict[str, Any]:
    """Health answers of a gateway with nothing to do, and while every computing worker computes."""
    idle = generator.gets(gate, "/healthz", seconds)
    with httpx.Client(base_url=gate.base_url, timeout=60) as http:
        callers = [threading.Thread(target=_spin, args=(http, gate, 4.0)) for _ in range(4)]
        for caller in callers:
            caller.start()
        wait_until(lambda: gate.operator.get("/v1/admin/status")["in_flight_executions"] == 4, "four calls in flight")
        busy = generator.gets(gate, "/healthz", seconds)
        for caller in callers:
            caller.join(60)
    return {"idle_p99_ms": idle["p99_ms"], "busy_p99_ms": busy["p99_ms"]}


def leases(gate: Gate) -> dict[str, float]:
    """Median time of a lease; the rate limit of the interface keeps this from being a throughput."""
    taken = []
    with httpx.Client(base_url=gate.base_url, timeout=60) as http:
        for _ in range(40):
            started = time.perf_counter()
            _lease(http)
            taken.append(time.perf_counter() - started)
    return {"p50_ms": statistics.median(taken) * 1000}


def approvals(gate: Gate) -> dict[str, float]:
    """Median times of a hold and of a denial, one after the other (approving would need an upstream)."""
    held, denied = [], []
    with httpx.Client(base_url=gate.base_url, timeout=60) as http:
        identity = _lease(http)
        for number in range(15):
            payment = {"to": "acct", "amount_cents": number + 1, "currency": "EUR"}
            started = time.perf_counter()
            answer = _execute(http, gate, identity, "payment_transfer", payment)
            held.append(time.perf_counter() - started)
            started = time.perf_counter()
            gate.operator.post(f"/v1/approvals/{answer.json()['approval_id']}/deny")
            denied.append(time.perf_counter() - started)
    return {"hold_p50_ms": statistics.median(held) * 1000, "deny_p50_ms": statistics.median(denied) * 1000}


def _lease(http: httpx.Client) -> Identity:
    identity = Identity()
    answer = http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": identity.jwk})
    answer.raise_for_status()
    identity.token = answer.json()["lease_jwt"]
    return identity


def _execute(http: httpx.Client, gate: Gate, identity: Identity, action: str, body: dict[str, Any]) -> httpx.Response:
    path = f"/v1/actions/{action}/execute"
    headers = {"Authorization": f"DPoP {identity.token}", "DPoP": identity.proof("POST", gate.base_url + path)}
    return http.post(path, headers=headers, json=body)


def _spin(http: httpx.Client, gate: Gate, seconds: float) -> None:
    _execute(http, gate, _lease(http), "spin", {"fuel": 0, "memory_mb": 0, "seconds": seconds})
