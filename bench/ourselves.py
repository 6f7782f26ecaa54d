"""What we measure of a running gateway. Every function takes the gate and returns figures by name."""

import statistics
import threading
import time
from typing import Any

import httpx
import psutil

from bench.load import Identity
from bench.measures import family, kind_of, pss_by_kind, wait_until
from bench.subjects import Gate

EXECUTE = "/v1/actions/text_digest/execute"
BODY = '{"text":"hello"}'
HEALTH_REQUESTS = 4000


def executes(gate: Gate, connections: int, requests: int) -> dict[str, Any]:
    """Durable executes of text_digest."""
    return gate.load("execute", EXECUTE, BODY, connections, requests)


def health_idle(gate: Gate) -> dict[str, Any]:
    """Health answers of a gateway with nothing to do."""
    return gate.load("get", "/healthz", "", 1, HEALTH_REQUESTS)


def health_busy(gate: Gate) -> dict[str, Any]:
    """Health answers while every computing worker computes."""
    with httpx.Client(base_url=gate.base_url, timeout=60) as http:
        callers = [threading.Thread(target=_spin, args=(http, gate, 4.0)) for _ in range(4)]
        for caller in callers:
            caller.start()
        wait_until(lambda: gate.operator.get("/v1/admin/status")["in_flight_executions"] == 4, "four calls in flight")
        found = health_idle(gate)
        for caller in callers:
            caller.join(60)
    return found


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


def memory(gate: Gate) -> dict[str, float]:
    """Median PSS by kind of process, in MB."""
    found = pss_by_kind(family(gate.pid))
    return {kind: statistics.median(sizes) / 1e6 for kind, sizes in sorted(found.items())}


def after_a_kill(gate: Gate) -> dict[str, float]:
    """From SIGKILL of every computing worker to the next served call, and to the next worker."""
    served, replaced = [], []
    with httpx.Client(base_url=gate.base_url, timeout=60) as http:
        identity = _lease(http)
        for _ in range(5):
            old = {pid for pid in family(gate.pid) if kind_of(pid) == "worker compute"}
            started = time.perf_counter()
            for pid in old:
                psutil.Process(pid).kill()
            _wait_for_successor(gate, old)
            replaced.append(time.perf_counter() - started)
            wait_until(
                lambda: _execute(http, gate, identity, "text_digest", {"text": "x"}).status_code == 200, "a served call"
            )
            served.append(time.perf_counter() - started)
    return {"served_ms": statistics.median(served) * 1000, "successor_seen_ms": statistics.median(replaced) * 1000}


def _wait_for_successor(gate: Gate, old: set[int]) -> None:
    wait_until(lambda: _computing(gate) - old, "a successor")


def _computing(gate: Gate) -> set[int]:
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
