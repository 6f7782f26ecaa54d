"""From SIGKILL of a process of each kind to the end of the next call that is served; medians, in milliseconds.

For the policy process: to the first answer of /readyz that says so, since a call whose decision is remembered does not
wait for it.
"""

import os
import signal
import statistics
import time
from collections.abc import Iterable
from contextlib import closing

import psutil

from bench.connections import Connection, take_lease
from bench.generator import BODY, EXECUTE
from bench.identity import Identity
from bench.measures import family, kind_of, wait_until
from bench.subjects import Gate

BOUNDS_MS = {"worker compute": 30, "policy": 150, "template": 300, "notary": 300, "front": 300}
"""The goals."""
SPARES = 2
"""Spares of front and policy process."""
RETRY_SECONDS = 0.001
MOST_TRIES = 2000
_READY = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def after_kills(gate: Gate, times: int, kinds: Iterable[str] = tuple(BOUNDS_MS)) -> dict[str, float]:
    """Median of `times` for each kind."""
    return {kind: statistics.median(_after_kill(gate, kind) for _ in range(times)) * 1000 for kind in kinds}


def _after_kill(gate: Gate, kind: str) -> float:
    """Kill all processes of the kind; seconds until it serves again."""
    identity = Identity()
    take_lease(gate.address, identity)
    requests = [_READY if kind == "policy" else identity.post(gate.base_url, EXECUTE, BODY) for _ in range(MOST_TRIES)]
    with closing(_Caller(gate, identity)) as caller:
        wait_until(lambda: _is_at_rest(gate, caller, identity), "a gateway at rest")
        doomed = wait_until(lambda: [pid for pid in family(gate.pid) if kind_of(pid) == kind], f"a {kind}")
        # Workers end with their template: a call that one of them still serves says nothing.
        gone = doomed if kind != "template" else [*doomed, *_workers(gate)]
        started = time.perf_counter()
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(_is_alive(pid) for pid in gone), "the end of what was killed")
        if kind == "policy":
            # The front learns of the end a moment later: its answer counts only once another process runs.
            wait_until(lambda: any(kind_of(pid) == kind and pid not in doomed for pid in family(gate.pid)), "another")
        while not caller.is_served(requests.pop()):
            time.sleep(RETRY_SECONDS)
        return time.perf_counter() - started


def _is_at_rest(gate: Gate, caller: "_Caller", identity: Identity) -> bool:
    """It serves, and has its spares: a kill that comes before they are ready costs a fresh interpreter more."""
    if sum(kind_of(pid) == "spare" for pid in family(gate.pid)) < SPARES:
        return False
    return caller.is_served(_READY) and caller.is_served(identity.post(gate.base_url, EXECUTE, BODY))


def _workers(gate: Gate) -> list[int]:
    return [pid for pid in family(gate.pid) if kind_of(pid).startswith("worker ")]


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class _Caller:
    """A client that connects again when it is cut off."""

    def __init__(self, gate: Gate, identity: Identity) -> None:
        self._gate, self._identity = gate, identity
        self._connection: Connection | None = None

    def is_served(self, request: bytes) -> bool:
        """Send one request; whether the answer is 200."""
        try:
            if self._connection is None:
                self._connection = Connection(self._gate.address, self._identity)
            return self._connection.ask(request) == 200
        except OSError:
            self.close()
            return False

    def close(self) -> None:
        """Cut the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
