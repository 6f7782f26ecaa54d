"""How often the disk is waited for: flushes of front and notary for each kind of request, at one connection.

Counted in the kernel's own account of their system calls. The notary's idle work (copying its log into the file,
extending it) is recognized by the files that it touches, and such a sample is taken again.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.gateway import Bearer, Gateway, config_for, gateway
from tests.support.manifests import limit_all, open_policy, patient
from tests.support.processes import pids
from tests.support.strace import Trace, traced
from tests.support.upstream import Upstream

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may trace a process that is not dumpable")

FLUSHES = ("fsync", "fdatasync", "sync_file_range", "msync", "sync", "syncfs")
CALLS = 10
ATTEMPTS = 50
PAYMENT = {"to": "acct-7", "amount_cents": 25000, "currency": "EUR"}


@dataclass
class Flushes:
    """Counts flushes of both processes."""

    front: Trace
    notary: Trace
    warm: Callable[[], httpx.Response]

    def of(self, request: Callable[[], httpx.Response], status: int) -> tuple[int, int]:
        """(flushes of the front, flushes of the notary) while this is answered."""
        for _ in range(ATTEMPTS):
            self.warm()  # the first write after the log was copied begins it anew, with a flush more
            self.front.news()
            if any(map(_is_upkeep, self.notary.news())):
                continue
            answer = request()
            assert answer.status_code == status, answer.text
            front, notary = self.front.news(), self.notary.news()
            if not any(map(_is_upkeep, notary)):
                return sum(map(_is_flush, front)), sum(map(_is_flush, notary))
        raise AssertionError(f"the notary was never left alone for one request in {ATTEMPTS}")


def _is_flush(line: str) -> bool:
    return re.match(rf"\d+ +({'|'.join(FLUSHES)})\(", line) is not None


def _is_upkeep(line: str) -> bool:
    """Copying the log into the file flushes that; lengthening the log opens it."""
    return "openat(" in line or (_is_flush(line) and "ledger.sqlite3>" in line)


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway of its own: on a used one, holds of other tests expire and their refusals are summed up, each with an
    event."""
    folder: Path = tmp_path_factory.mktemp("gate")
    policy = open_policy(folder / "policy")
    limit_all(policy, max_calls_per_hour=1_000_000, max_sessions=1_000)
    top = f'{patient(folder / "actions")}policy_dir = "{policy}"\n'
    with gateway(folder, config_for(up.address, top)) as running:
        yield running


@pytest.fixture(scope="module")
def flushes(gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flushes]:
    folder: Path = tmp_path_factory.mktemp("traces")
    agent = gate.agent()
    with _traced(gate, "front 1", folder) as front, _traced(gate, "notary", folder) as notary:
        yield Flushes(front, notary, lambda: agent.execute("text_digest", {"text": "warm"}))


@contextmanager
def _traced(gate: Gateway, name: str, folder: Path) -> Iterator[Trace]:
    with traced(pids(gate)[name], ",".join((*FLUSHES, "openat")), folder) as trace:
        yield trace


def test_a_call_waits_for_the_disk_twice(flushes: Flushes, agent: Bearer) -> None:
    counts = [flushes.of(lambda: agent.execute("text_digest", {"text": "x"}), 200) for _ in range(CALLS)]
    assert counts == [(0, 2)] * CALLS


def test_a_budget_and_a_quota_cost_no_flush_more(flushes: Flushes, gate: Gateway) -> None:
    agent = gate.agent(max_calls=1000)
    assert flushes.of(lambda: agent.execute("text_digest", {"text": "x"}), 200) == (0, 2)
    told = gate.events(event_type="ActionCall", limit=1)[0]["budgets_after"]
    assert {"calls_remaining", "calls_remaining_this_hour"} == set(told), "both were counted"


def test_a_refused_call_waits_for_the_disk_once(flushes: Flushes, gate: Gateway, agent: Bearer) -> None:
    assert flushes.of(lambda: agent.execute("no_such_action"), 404) == (0, 1)
    assert flushes.of(lambda: agent.execute("text_digest", {"no": "text"}), 422) == (0, 1)
    replayed = agent.headers("POST", "/v1/actions/text_digest/execute")
    gate.http.post("/v1/actions/text_digest/execute", headers=replayed, json={"text": "x"})
    again = flushes.of(
        lambda: gate.http.post("/v1/actions/text_digest/execute", headers=replayed, json={"text": "x"}), 401
    )
    assert again == (0, 1)


def test_a_hold_and_a_lease_wait_for_the_disk_once(flushes: Flushes, gate: Gateway, agent: Bearer) -> None:
    assert flushes.of(lambda: agent.execute("payment_transfer", PAYMENT), 202) == (0, 1)
    body = {"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk, "budgets": {"max_calls": 3}}
    assert flushes.of(lambda: gate.http.post("/v1/leases", json=body), 200) == (0, 1)


def test_a_read_waits_for_the_disk_for_its_proof_and_for_nothing_else(
    flushes: Flushes, gate: Gateway, agent: Bearer, operator: Bearer
) -> None:
    receipt = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    assert flushes.of(lambda: agent.get(f"/v1/receipts/{receipt}"), 200) == (0, 1)
    assert flushes.of(lambda: operator.get("/v1/audit/events"), 200) == (0, 1)
    for path in ("/readyz", "/healthz", "/v1/actions", "/.well-known/jwks.json"):
        assert flushes.of(partial(gate.http.get, path), 200) == (0, 0), path
