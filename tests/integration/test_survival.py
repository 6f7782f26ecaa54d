"""Survival of faults: processes that are killed or hang while calls run."""

import os
import signal
import time
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.background import Background, HeldCall, in_flight
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.manifests import ENDLESS
from tests.support.own_gateway import own_gateway
from tests.support.upstream import Upstream

SPIN = {"fuel": 0, "memory_mb": 0, "seconds": 250}
"""Ends when its worker or its front does."""


gate = own_gateway(spin=ENDLESS)
"""A gateway whose processes are killed one after the other."""


def unresolved(gate: Gateway) -> int:
    return int(gate.operator().get("/v1/admin/status").json()["unresolved_intents"])


@pytest.mark.parametrize("title", ["notary", "policy", "template", "worker http", "worker fs", "worker compute"])
def test_a_killed_process_is_replaced_and_calls_go_on(gate: Gateway, title: str) -> None:
    agent = gate.agent()
    victims = {one.pid for one in gate.children(title)}
    for pid in victims:
        os.kill(pid, signal.SIGKILL)

    def serves() -> bool:
        return all(
            agent.execute(action, body).status_code == 200
            for action, body in (
                ("text_digest", {"text": "x"}),
                ("file_write", {"path": "a", "content": "b"}),
                ("http_fetch", {"path": "a"}),
            )
        )

    wait_for(serves, "calls through the successor")
    wait_for(lambda: {one.pid for one in gate.children(title)} - victims, "the successor")


def test_a_killed_front_is_replaced_and_its_call_shows_as_unresolved(gate: Gateway) -> None:
    """How soon: tests/chaos measures it."""
    agent, before = gate.agent(), unresolved(gate)
    call = Background(lambda: agent.execute("spin", SPIN))
    wait_for(lambda: in_flight(gate) == 1, "a call in flight")
    wait_for(lambda: unresolved(gate) == before + 1, "its intent")
    gate.child("front").kill()
    assert call.status() == 0
    wait_for(lambda: _ignoring_loss(lambda: gate.http.get("/readyz")), "a successor that answers")
    wait_for(lambda: gate.http.get("/readyz").status_code == 200, "a successor that is ready")
    assert unresolved(gate) == before + 1
    newest = max(gate.operator().get("/v1/admin/intents").json()["intents"], key=lambda intent: intent["dispatched_at"])
    assert newest["action_id"] == "spin"
    assert agent.execute("text_digest", {"text": "again"}).status_code == 200
    assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


def _ignoring_loss(call: Any) -> Any:
    try:
        return call()
    except httpx.TransportError:
        return None


def test_a_notary_killed_in_calls_is_asked_again_and_they_are_answered_and_recorded_once(
    gate: Gateway, up: Upstream
) -> None:
    agent, before = gate.agent(), unresolved(gate)
    held = HeldCall(up, agent)  # its intent is with the notary that is killed, its receipt with the next one
    notary = gate.child("notary")
    os.kill(notary.pid, signal.SIGSTOP)
    meanwhile = [Background(lambda: agent.execute("text_digest", {"text": "x"})) for _ in range(4)]
    for _ in range(50):  # turns of the front, in which it asks the notary that does not listen
        assert gate.http.get("/healthz").status_code == 200
    os.kill(notary.pid, signal.SIGKILL)
    assert {call.status() for call in meanwhile} == {200}
    assert held.release().status() == 200
    (successor,) = gate.children("notary")
    assert successor.pid != notary.pid
    events = gate.events(session_id=agent.session_id, event_type="ActionCall")
    assert [event["decision"] for event in events] == ["allow"] * 5
    assert len({event["receipt_id"] for event in events}) == 5
    assert unresolved(gate) == before
    assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


def test_calls_wait_ten_seconds_for_a_notary_that_hangs_and_are_in_evidence_once_it_goes_on(gate: Gateway) -> None:
    """Three waits of ten seconds each would be half a minute."""
    agents, before = [gate.agent(), gate.agent(max_calls=3)], unresolved(gate)
    notary, began = gate.child("notary"), time.monotonic()
    os.kill(notary.pid, signal.SIGSTOP)
    try:
        calls = [Background(partial(agent_call, one)) for one in agents]
        assert {call.status() for call in calls} == {503}
        assert time.monotonic() - began < 25
        assert gate.http.get("/readyz").status_code == 503
    finally:
        os.kill(notary.pid, signal.SIGCONT)
    wait_for(gate.is_ready, "a notary that goes on")
    for agent in agents:
        told = wait_for(partial(gate.events, session_id=agent.session_id, event_type="ActionCall"), "its event")
        assert [one["error_code"] for one in told] == ["replay_cache_unavailable"]
    assert unresolved(gate) == before


def agent_call(agent: Bearer) -> httpx.Response:
    return agent.execute("text_digest", {"text": "x"})
