"""Clients that are each connected to one front of a gateway that has several, whichever would have taken them."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import httpx
import psutil

from tests.support.gateway import ANSWER_SECONDS, Bearer, Gateway, as_documented, wait_for


def fronts(gate: Gateway) -> list[psutil.Process]:
    """The front processes, by number."""
    return [front for front, _ in sorted(gate.titled("front "), key=lambda one: one[1])]


@contextmanager
def client_of(gate: Gateway, front: psutil.Process) -> Iterator[httpx.Client]:
    """A client with one connection, to this front: no other was awake to take it."""
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=None)
    with httpx.Client(
        base_url=gate.ready["base_url"], timeout=ANSWER_SECONDS, limits=limits, verify=False,
        event_hooks={"response": [as_documented]},
    ) as client:  # fmt: skip
        others = [one for one in fronts(gate) if one.pid != front.pid]
        try:
            for other in others:
                os.kill(other.pid, signal.SIGSTOP)
                stopped = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
                wait_for(lambda: other.status() in stopped, "a front that stands still")  # noqa: B023
            assert client.get("/healthz").status_code == 200
        finally:
            for other in others:
                os.kill(other.pid, signal.SIGCONT)
        yield client


@contextmanager
def clients_of(gate: Gateway) -> Iterator[list[httpx.Client]]:
    """One client for each front, in the order of their numbers."""
    with ExitStack() as stack:
        yield [stack.enter_context(client_of(gate, front)) for front in fronts(gate)]


def through(client: httpx.Client, bearer: Bearer) -> Bearer:
    """The same agent or operator on this client."""
    return replace(bearer, http=client)
