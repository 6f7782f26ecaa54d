"""Dependencies that are gone for a while, on a gateway that others go on using afterwards."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from tests.conformance.deployment import Caller, Deployment
from tests.support.gateway import wait_for


@contextmanager
def without_policy(gate: Deployment) -> Iterator[None]:
    """The policy process has died, and the supervisor, which would start another, is stopped meanwhile."""
    policy = gate.gateway.child("policy")
    os.kill(gate.gateway.process.pid, signal.SIGSTOP)
    try:
        policy.send_signal(signal.SIGKILL)
        wait_for(lambda: gate.client.get("/readyz").json()["opa"] is False, "readiness that says so")
        yield
    finally:
        os.kill(gate.gateway.process.pid, signal.SIGCONT)
        gate.ready()


@contextmanager
def frozen_policy(gate: Deployment) -> Iterator[None]:
    """The policy process is there and does not answer."""
    policy = gate.gateway.child("policy")
    policy.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):  # it was replaced meanwhile
            policy.send_signal(signal.SIGCONT)
        gate.ready()


def alone(gate: Deployment, name: str) -> httpx.Response:
    """Readiness without this dependency, which is reported at once; others may need a moment to recover."""
    answers: list[httpx.Response] = []

    def is_alone() -> bool:
        answers.append(gate.client.get("/readyz"))
        assert (answers[-1].status_code, answers[-1].json()[name]) == (503, False)
        return sum(answers[-1].json()[one] is False for one in ("redis", "opa", "ledger")) == 1

    wait_for(is_alone, f"readiness without {name} alone")
    return answers[-1]


@dataclass
class Outage:
    """The answers of a gateway while its policy engine was gone, and while it did not answer."""

    status: dict[str, Any]
    readiness: httpx.Response
    gone: httpx.Response
    """The answer of a call that would write the file `closed.policy`."""
    frozen: httpx.Response
    """The same, while the engine does not answer."""
    seconds: float
    """How long that answer took."""
    said: list[dict[str, Any]]
    """Its event in the log."""
    wrote: bool
    """Whether the file is there."""


def said_of(gate: Deployment, answer: httpx.Response) -> list[dict[str, Any]]:
    """The event of an answer in the log."""

    def lines() -> list[dict[str, Any]]:
        return [one for one in gate.gateway.lines() if one.get("trace_id") == answer.headers["x-trace-id"]]

    return list(wait_for(lines, "a line in the log"))


def live_through_outage(gate: Deployment, agent: Caller) -> Outage:
    """Both, one after the other."""
    request = {"path": "closed.policy", "content": "x"}
    with without_policy(gate):
        readiness = alone(gate, "opa")
        status = gate.status()
        gone = agent.execute("file_write", request)
    with frozen_policy(gate):
        began = time.monotonic()
        frozen = agent.execute("file_write", request)
        seconds = time.monotonic() - began
    wrote = (gate.state / "files" / "closed.policy").exists()
    return Outage(status, readiness, gone, frozen, seconds, said_of(gate, frozen), wrote)
