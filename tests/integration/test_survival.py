"""What survives: processes that die, the gateway killed as a whole, stores that fail."""

import signal
import sqlite3
import threading
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.upstream import upstream

SPIN = {"fuel": 0, "memory_mb": 0, "seconds": 3}


def in_background(call: Any) -> tuple[threading.Thread, list[httpx.Response]]:
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    return thread, answers


def in_flight(gate: Gateway) -> int:
    return int(gate.operator().get("/v1/admin/status").json()["in_flight_executions"])


def test_a_worker_killed_in_a_call_costs_that_call_and_leaves_a_receipt(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        agent = gate.agent()
        assert agent.execute("text_digest", {"text": "warm"}).status_code == 200
        thread, answers = in_background(lambda: agent.execute("spin", SPIN))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        before = {process.pid: sum(process.cpu_times()[:2]) for process in gate.children("worker compute")}
        busy = wait_for(
            lambda: [p for p in gate.children("worker compute") if sum(p.cpu_times()[:2]) > before.get(p.pid, 0) + 0.1],
            "a worker that computes",
        )
        busy[0].kill()
        thread.join(20)
        assert (answers[0].status_code, answers[0].json()) == (502, {"error": "action_execution_failed"})
        event = gate.events(session_id=agent.session_id, decision="error")[0]
        receipt = agent.get(f"/v1/receipts/{event['receipt_id']}").json()
        assert receipt["normalized_result"]["kind"] == "internal_error"
        assert receipt["verification_outcome"] == {"status": "provider_failed_before_verification"}
        assert agent.execute("text_digest", {"text": "next"}).status_code == 200
        status = gate.operator().get("/v1/admin/status").json()
        assert status["unresolved_intents"] == 0


@pytest.mark.parametrize("title", ["policy", "template", "worker http", "worker fs", "worker compute"])
def test_a_killed_process_is_replaced_and_calls_go_on(tmp_path: Path, title: str) -> None:
    with upstream() as up, gateway(tmp_path, config_for(up.address)) as gate:
        agent = gate.agent()
        victim = gate.child(title)
        victim.kill()

        def serves() -> bool:
            return all(
                agent.execute(action, body).status_code == 200
                for action, body in (
                    ("text_digest", {"text": "x"}),
                    ("file_write", {"path": "a", "content": "b"}),
                    ("http_fetch", {"path": "a"}),
                )
            )

        wait_for(serves, "calls through the successor", 15)
        assert gate.child(title).pid != victim.pid


def test_a_killed_front_is_replaced_within_two_seconds_and_its_call_shows_as_unresolved(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        agent = gate.agent()
        thread, _ = in_background(lambda: _ignoring_loss(lambda: agent.execute("spin", SPIN)))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        gate.child("front").kill()
        thread.join(10)
        wait_for(lambda: _ignoring_loss(lambda: gate.http.get("/readyz")), "a successor that answers", 5)
        status = wait_for(lambda: _ignoring_loss(lambda: gate.operator().get("/v1/admin/status")), "status").json()
        assert status["unresolved_intents"] == 1
        intents = gate.operator().get("/v1/admin/intents").json()["intents"]
        assert intents[0]["action_id"] == "spin"
        assert set(intents[0]) >= {
            "intent_id", "trace_id", "action_id", "principal", "dispatched_at", "age_seconds", "grant_id",
            "provider_module",
        }  # fmt: skip
        assert agent.execute("text_digest", {"text": "again"}).status_code == 200
        assert gate.operator().get("/v1/audit/verify").json()["intact"] is True


def _ignoring_loss(call: Any) -> Any:
    try:
        return call()
    except httpx.TransportError:
        return None


def test_state_survives_a_gateway_killed_as_a_whole(tmp_path: Path) -> None:
    path = "/v1/actions/text_digest/execute"
    with upstream() as up:
        with gateway(tmp_path, config_for(up.address)) as gate:
            agent = gate.agent(max_calls=3)
            base = gate.base
            headers = agent.headers("POST", path)
            assert gate.http.post(path, headers=headers, json={"text": "1"}).status_code == 200
            payment = {"to": "acct-1", "amount_cents": 1, "currency": "EUR"}
            approval_id = agent.execute("payment_transfer", payment).json()["approval_id"]
            receipt_id = gate.events(event_type="ActionCall", decision="allow")[0]["receipt_id"]
            everything = psutil.Process(gate.process.pid).children(recursive=True)
            gate.process.kill()
            gate.process.wait(10)
            psutil.wait_procs(everything, timeout=5)
            assert not [process for process in everything if process.is_running() and process.status() != "zombie"]
        config = config_for(up.address, more=f'public_base_url = "{base}"')
        with gateway(tmp_path, config) as gate:
            agent.http, agent.base = gate.http, base
            answer = gate.http.post(path, headers=headers, json={"text": "1"})
            assert answer.json() == {"error": "replay_detected"}
            assert agent.get(f"/v1/receipts/{receipt_id}").json()["signature_status"] == "verified"
            operator = gate.operator()
            operator.base = base
            assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 200
            assert agent.execute("text_digest", {"text": "2"}).status_code == 200
            assert agent.execute("text_digest", {"text": "3"}).json() == {"error": "budget_exhausted"}
            assert operator.get("/v1/audit/verify").json()["intact"] is True


def test_drain_finishes_what_is_in_flight_and_refuses_the_rest(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        agent, operator = gate.agent(), gate.operator()
        thread, answers = in_background(lambda: agent.execute("spin", SPIN | {"seconds": 1.5}))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        first = operator.post("/v1/admin/drain").json()
        assert first == {"draining": True, "already_draining": False, "in_flight_executions": 1}
        assert agent.execute("text_digest", {"text": ""}).json() == {"error": "draining"}
        answer = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk})
        assert (answer.status_code, answer.json()) == (503, {"error": "draining"})
        assert operator.post("/v1/admin/drain").json()["already_draining"] is True
        status = operator.get("/v1/admin/status").json()
        assert (status["status"], status["draining"]) == ("draining", True)
        thread.join(20)
        assert answers[0].status_code == 200
        assert [event["event_type"] for event in gate.events(event_type="AdminDrain")] == ["AdminDrain"] * 2
        assert gate.stop(signal.SIGTERM) == 0


def test_sigterm_lets_a_call_finish(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        agent = gate.agent()
        thread, answers = in_background(lambda: agent.execute("spin", SPIN | {"seconds": 1.5}))
        wait_for(lambda: in_flight(gate) == 1, "a call in flight")
        assert gate.stop(signal.SIGTERM) == 0
        thread.join(20)
        assert answers[0].status_code == 200


def test_a_ledger_that_takes_no_more_fails_closed_and_recovers(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        agent = gate.agent()
        assert agent.execute("text_digest", {"text": "1"}).status_code == 200
        blocker = sqlite3.connect(gate.state / "ledger.sqlite3", isolation_level=None)
        blocker.execute("begin immediate")  # as a full disk or a stuck neighbour would
        answer = agent.execute("text_digest", {"text": "2"})
        assert answer.status_code in (500, 503)
        assert answer.json()["error"] in ("evidence_persistence_failed", "ledger_unavailable")
        blocker.execute("rollback")
        blocker.close()
        wait_for(lambda: agent.execute("text_digest", {"text": "3"}).status_code == 200, "recovery")
        assert gate.operator().get("/v1/audit/verify").json()["intact"] is True
