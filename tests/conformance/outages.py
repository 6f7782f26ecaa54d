"""Dependencies that are gone for a while, on a gateway that others go on using afterwards."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conformance.deployment import Deployment
from tests.support.gateway import wait_for


@contextmanager
def without_policy(gate: Deployment) -> Iterator[None]:
    """The policy process has died, and whoever would start another is stopped meanwhile."""
    policy = gate.gateway.child("policy")
    os.kill(gate.gateway.process.pid, signal.SIGSTOP)
    try:
        policy.send_signal(signal.SIGKILL)
        wait_for(lambda: gate.client.get("/readyz").json()["opa"] is False, "readiness that says so")
        yield
    finally:
        os.kill(gate.gateway.process.pid, signal.SIGCONT)
        wait_for(lambda: gate.client.get("/readyz").status_code == 200, "recovery")


@contextmanager
def frozen_policy(gate: Deployment) -> Iterator[None]:
    """The policy process is there and does not answer."""
    policy = gate.gateway.child("policy")
    policy.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        if policy.is_running():
            policy.send_signal(signal.SIGCONT)
        wait_for(lambda: gate.client.get("/readyz").status_code == 200, "recovery")
