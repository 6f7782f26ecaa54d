"""Calls of one action that run beside each other in one worker of a whole gateway."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ipc.limits import MAX_AHEAD
from tests.support.background import Background, HeldCall
from tests.support.gateway import Gateway, config_for, gateway
from tests.support.manifests import patient
from tests.support.upstream import Upstream


@pytest.fixture(scope="module")
def gate(up: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose actions have much time."""
    folder: Path = tmp_path_factory.mktemp("shared")
    with gateway(folder, config_for(up.address, patient(folder / "actions"))) as running:
        yield running


def busy_workers(gate: Gateway) -> list[psutil.Process]:
    """The http workers that have as many connections to upstreams as one worker may have calls."""
    return [worker for worker in gate.children("worker http") if len(worker.net_connections("tcp")) >= MAX_AHEAD]


def test_one_worker_holds_many_calls_and_its_death_leaves_a_receipt_for_each_of_them(
    gate: Gateway, up: Upstream
) -> None:
    agent = gate.agent()
    assert agent.execute("http_fetch", {"path": "x"}).status_code == 200
    calls = [HeldCall(up, agent) for _ in range(MAX_AHEAD)]
    (worker,) = busy_workers(gate)
    asked = len(up.seen)
    os.kill(worker.pid, signal.SIGKILL)
    assert Counter(call.status() for call in calls) == {502: MAX_AHEAD}
    events = gate.events(session_id=agent.session_id, event_type="ActionCall", decision="error")
    assert len({event["receipt_id"] for event in events}) == len(events) == MAX_AHEAD
    for event in events:
        receipt = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
        assert receipt["normalized_result"]["kind"] == "internal_error"
        assert receipt["verification_outcome"] == {"status": "provider_failed_before_verification"}
    assert gate.operator().get("/v1/admin/intents").json()["total"] == 0
    assert len(up.seen) == asked, "none of them is sent again"
    assert agent.execute("http_fetch", {"path": "x"}).status_code == 200


def test_every_call_gets_the_answer_to_its_own_request(gate: Gateway, up: Upstream) -> None:
    agents = [gate.agent() for _ in range(3)]
    names = [f"slow/50/{number}" for number in range(3 * MAX_AHEAD)]

    def fetch(number: int, name: str) -> Background:
        return Background(lambda: agents[number % 3].execute("http_fetch", {"path": name}))

    calls = {name: fetch(number, name) for number, name in enumerate(names)}
    for name, call in calls.items():
        answer = call.answer()
        assert answer is not None
        assert answer.json()["output"]["body"]["path"] == f"/{name}"
