"""GET /v1/calls: an agent learns what became of its calls, those of earlier sessions of its key too."""

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from gateway_client import ActionFailed, AgentClient, Denied, Invalid, NotFound

from tests.support.gateway import Bearer, Gateway, wait_for
from tests.support.hostile_upstream import HostileUpstream

PAYMENT = {"to": "acct-7", "currency": "EUR"}


@pytest.fixture(scope="module")
def gate(beset: Gateway) -> Gateway:
    """A gateway with an upstream that may hang."""
    return beset


@pytest.fixture
def client(gate: Gateway) -> Iterator[AgentClient]:
    """An agent with a key of its own."""
    with AgentClient(gate.base) as agent:
        yield agent


def states(client: AgentClient, **given: Any) -> list[tuple[str | None, str, str | None]]:
    return [(one.action_id, one.state, one.error) for one in client.calls(**given).calls]


def test_an_agent_lists_what_became_of_its_calls_the_newest_first(
    gate: Gateway, client: AgentClient, hostile: HostileUpstream
) -> None:
    done = client.execute("text_digest", {"text": "a"})
    with pytest.raises(ActionFailed):
        client.execute("http_post", {"path": "reset", "message": "m"})
    with pytest.raises(Denied):
        client.execute("forbidden_export", {"table": "customers"})
    with pytest.raises(Invalid):
        client.execute("text_digest", {"text": 5})
    with pytest.raises(NotFound):
        client.execute("no_such_action")
    listed = client.calls().calls
    assert [(one.action_id, one.state, one.error) for one in listed] == [
        (None, "refused", "action_not_found"),
        ("text_digest", "refused", "schema_violation"),
        ("forbidden_export", "denied", "policy_denied"),
        ("http_post", "failed", "action_execution_failed"),
        ("text_digest", "executed", None),
    ]
    assert (listed[-1].trace_id, listed[-1].receipt_id) == (done.trace_id, done.receipt_id)  # type: ignore[union-attr]
    assert listed[-1].request_hash is not None


def test_calls_of_another_key_are_not_listed_and_those_of_earlier_sessions_are(
    gate: Gateway, client: AgentClient
) -> None:
    client.execute("text_digest", {"text": "first session"})
    client.renew()
    client.execute("text_digest", {"text": "second session"})
    with AgentClient(gate.base) as other:
        other.execute("text_digest", {"text": "of another"})
        assert len(other.calls().calls) == 1
    assert states(client) == [("text_digest", "executed", None)] * 2
    assert states(client, after="trc_of-nothing") == []


def test_a_held_call_is_listed_once_with_what_became_of_it(gate: Gateway, client: AgentClient) -> None:
    held = [client.execute("payment_transfer", PAYMENT | {"amount_cents": amount}) for amount in (1, 2, 3)]
    yes, no, waits = (one.approval_id for one in held)
    operator = gate.operator()
    assert operator.post(f"/v1/approvals/{yes}/approve").status_code == 200
    assert operator.post(f"/v1/approvals/{no}/deny", {"reason": "no"}).status_code == 200
    listed = client.calls().calls
    assert [(one.approval_id, one.state) for one in listed] == [(waits, "held"), (no, "denied"), (yes, "executed")]
    assert listed[-1].receipt_id is not None


def test_a_call_is_listed_while_it_runs(gate: Gateway, client: AgentClient, hostile: HostileUpstream) -> None:
    before = len(hostile.seen)

    def call() -> None:
        with pytest.raises(ActionFailed):
            client.execute("small_fetch", {"path": "silent"})

    thread = threading.Thread(target=call)
    thread.start()
    wait_for(lambda: len(hostile.seen) > before, "the upstream was asked")
    assert states(client) == [("small_fetch", "running", None)]

    def kill() -> bool:
        for process in gate.children("worker http"):
            os.kill(process.pid, signal.SIGKILL)
        thread.join(1)
        return not thread.is_alive()

    wait_for(kill, "the call ends with its worker")
    assert states(client) == [("small_fetch", "failed", "action_execution_failed")]


def test_only_a_lease_lists_calls(gate: Gateway, agent: Bearer) -> None:
    assert gate.http.get(f"{gate.base}/v1/calls").status_code == 401
    assert agent.get("/v1/calls?limit=0").status_code == 400
    assert agent.get("/v1/calls").json() == {"calls": [], "next": None}
