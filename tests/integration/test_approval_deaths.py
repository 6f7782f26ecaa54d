"""An approval whose operator leaves, or whose gateway dies, in the middle of it: one end, and the right price."""

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.background import Background
from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.manifests import example
from tests.support.own_gateway import own_gateway
from tests.support.upstream import Upstream

HELD = example("http_post", action_id="held_post", risk_level="critical", resource_limits={"timeout_seconds": 300})
WAITS = {"path": "wait", "message": "held"}


gate = own_gateway("[limits]\nworker_wait_seconds = 300\n[workers.http]\nmin_spare = 1\nmax = 1\n", HELD)
"""A gateway with one worker for HTTP, so that a call can be kept from being dispatched."""


@pytest.fixture(autouse=True)
def _nobody_waits_for_ever(up: Upstream) -> Iterator[None]:
    up.hold.clear()
    yield
    up.hold.set()


def hold_of(agent: Bearer, **changes: Any) -> str:
    answer = agent.execute("held_post", WAITS | changes)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["approval_id"])


def arrivals(up: Upstream, message: str) -> int:
    return sum(message.encode() in seen.body for seen in up.seen)


def polled(gate: Gateway, agent: Bearer, approval_id: str) -> dict[str, Any]:
    """The state as the agent hears it, from whichever front is there."""

    def ask() -> httpx.Response | None:
        try:
            answer = agent.get(f"/v1/approvals/{approval_id}/poll")
        except httpx.TransportError:
            return None
        return answer if answer.status_code == 200 else None

    state: dict[str, Any] = wait_for(ask, "a front that answers").json()
    return state


def approve_and_leave(operator: Bearer, approval_id: str) -> socket.socket:
    """Send an approve on a connection of its own; closing it is the operator's leaving."""
    path = f"/v1/approvals/{approval_id}/approve"
    headers = operator.headers("POST", path) | {"Host": "localhost", "Content-Length": "0"}
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    host, _, port = str(operator.http.base_url.netloc.decode()).rpartition(":")
    sock = socket.create_connection((host, int(port)), timeout=60)
    sock.sendall(head.encode() + b"\r\n")
    return sock


def remaining(gate: Gateway, agent: Bearer) -> int:
    """The remaining budget, read by a call that costs one."""
    answer = agent.execute("text_digest", {"text": "x"})
    assert answer.status_code == 200, answer.text
    (event,) = gate.events(trace_id=answer.json()["trace_id"])
    return int(event["budgets_after"]["calls_remaining"])


def test_an_approval_goes_on_when_its_operator_leaves_and_the_agent_hears_its_end(gate: Gateway, up: Upstream) -> None:
    agent = gate.agent(max_calls=5)
    approval_id = hold_of(agent, message="leaves")
    sock = approve_and_leave(gate.operator(), approval_id)
    wait_for(lambda: arrivals(up, "leaves"), "the call at the upstream")
    assert polled(gate, agent, approval_id)["state"] == "claimed"
    sock.close()
    up.hold.set()
    state = wait_for(
        lambda: (answer := polled(gate, agent, approval_id))["state"] != "claimed" and answer, "the end of the approval"
    )
    assert state["state"] == "approved"
    receipt = agent.get(f"/v1/receipts/{state['receipt_id']}").json()
    assert (receipt["normalized_result"]["kind"], receipt["signature_status"]) == ("success", "verified")
    assert gate.operator().post(f"/v1/approvals/{approval_id}/approve").status_code == 404
    assert arrivals(up, "leaves") == 1


def test_a_gateway_that_dies_while_an_approved_call_waits_for_a_worker_runs_nothing_and_gives_the_call_back(
    gate: Gateway, up: Upstream
) -> None:
    agent = gate.agent(max_calls=5)
    approval_id = hold_of(agent, message="never sent")
    other, operator = gate.agent(), gate.operator()
    busy = Background(lambda: other.execute("http_fetch", {"path": "wait?busy"}))
    wait_for(lambda: any("busy" in seen.path for seen in up.seen), "a call that keeps the only worker")
    approving = Background(lambda: operator.post(f"/v1/approvals/{approval_id}/approve"))
    wait_for(lambda: polled(gate, agent, approval_id)["state"] == "claimed", "the claim")
    wait_for(lambda: gate.events(event_type="ApprovalGranted", session_id=agent.session_id), "its evidence")
    gate.child("front").kill()
    up.hold.set()
    assert (approving.status(), busy.status()) == (0, 0)
    state = polled(gate, agent, approval_id)
    assert (state["state"], state["outcome"], state["reason"]) == ("approved", "failed", "interrupted")
    assert remaining(gate, agent) == 4
    intents = gate.operator().get("/v1/admin/intents").json()["intents"]
    assert "held_post" not in [one["action_id"] for one in intents]
    assert gate.operator().post(f"/v1/approvals/{approval_id}/approve").status_code == 404
    assert arrivals(up, "never sent") == 0
    told = [
        (event["event_type"], event["decision"], event.get("error_code"))
        for event in reversed(gate.events(session_id=agent.session_id))
        if event.get("approval_id") == approval_id
    ]
    assert told == [
        ("ActionCall", "pending_approval", None), ("ApprovalGranted", "allow", None),
        ("ActionCall", "error", "interrupted"),
    ]  # fmt: skip


def test_a_gateway_that_dies_between_dispatch_and_record_says_that_nobody_knows_and_runs_it_once(
    gate: Gateway, up: Upstream
) -> None:
    agent = gate.agent(max_calls=5)
    approval_id, operator = hold_of(agent, message="once"), gate.operator()
    unresolved = operator.get("/v1/admin/status").json()["unresolved_intents"]
    approving = Background(lambda: operator.post(f"/v1/approvals/{approval_id}/approve?learn_domain=127.0.0.1"))
    assert approving.status() == 400  # no domain, and the hold still waits
    approving = Background(lambda: operator.post(f"/v1/approvals/{approval_id}/approve"))
    wait_for(lambda: arrivals(up, "once"), "the call at the upstream")
    worker = gate.child("worker http")
    gate.child("front").kill()
    worker.wait(60)  # one that has told its result before it ends leaves a receipt
    up.hold.set()
    assert approving.status() == 0
    state = polled(gate, agent, approval_id)
    assert (state["state"], state["outcome"], state["reason"]) == ("approved", "failed", "evidence_persistence_failed")
    assert "receipt_id" not in state
    operator = gate.operator()
    detail = operator.get(f"/v1/approvals/{approval_id}").json()
    assert (detail["error_code"], detail["claimed_by"], detail["receipt_id"]) == (
        "evidence_persistence_failed", "dev", None,
    )  # fmt: skip
    assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 404
    assert operator.get("/v1/admin/status").json()["unresolved_intents"] == unresolved + 1
    assert remaining(gate, agent) == 3  # it was dispatched: nothing is given back
    assert arrivals(up, "once") == 1
    assert operator.get("/v1/audit/verify").json()["intact"] is True
