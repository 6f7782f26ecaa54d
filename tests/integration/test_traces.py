"""One trace id for each request: in its answer, on every line that the log has of it, and in its events."""

import json
import os
import signal
from typing import Any

import httpx

from tests.integration.test_store_faults import blocked, damaged
from tests.support.gateway import Gateway, wait_for
from tests.support.own_gateway import own_gateway
from tests.support.raw_http import raw

gate = own_gateway()
"""One whose store goes down now and then."""


def trace_of(answer: httpx.Response) -> str:
    return str(answer.headers["x-trace-id"])


def said_of(gate: Gateway, trace_id: str) -> list[dict[str, Any]]:
    """Lines of the log with this trace id, once there is one."""

    def lines() -> list[dict[str, Any]]:
        whole = gate.log.read_text().rpartition("\n")[0].splitlines()
        return [one for line in whole if trace_id in line and (one := json.loads(line)).get("trace_id") == trace_id]

    records: list[dict[str, Any]] = wait_for(lines, f"a line of the log with {trace_id}")
    return records


def test_what_is_no_request_has_a_trace_too(gate: Gateway) -> None:
    traces = set()
    for sent in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 200 + b"\r\n"):
        with raw(gate.ready["base_url"].removeprefix("http://")) as connection:
            connection.send(sent)
            reply = connection.reply()
        assert reply is not None
        assert reply.status in (400, 431)
        traces.add(reply.headers["x-trace-id"])
    assert len(traces) == 2


def test_a_reload_has_the_trace_of_its_request_in_its_event(gate: Gateway) -> None:
    answer = gate.operator().post("/v1/admin/reload")
    assert answer.status_code == 200
    (event,) = gate.events(trace_id=trace_of(answer))
    assert event["event_type"] == "AdminReload"
    wait_for(
        lambda: "supervisor" in [one["process"] for one in said_of(gate, trace_of(answer))], "the supervisor's line"
    )


def test_what_a_store_that_is_down_refuses_tells_its_cause_under_the_trace_of_the_answer(gate: Gateway) -> None:
    operator = gate.operator()
    with blocked(gate):
        refused = operator.post("/v1/admin/reload")
    assert refused.status_code == 503
    (line,) = said_of(gate, trace_of(refused))
    assert (line["level"], line["code"]) == ("warning", refused.json()["error"])
    assert line["cause"]
    with damaged(gate, "unresolved"):
        unreadable = gate.operator().get("/v1/admin/intents")
    assert (unreadable.status_code, unreadable.json()["error"]) == (503, "ledger_unavailable")
    (line,) = said_of(gate, trace_of(unreadable))
    assert (line["code"], bool(line["cause"])) == ("ledger_unavailable", True)


def test_a_call_that_fails_says_it_once(gate: Gateway) -> None:
    agent = gate.agent()
    with blocked(gate):
        refused = agent.execute("text_digest", {"text": "x"})
    assert refused.status_code == 503
    (line,) = wait_for(lambda: [one for one in said_of(gate, trace_of(refused)) if "decision" in one], "its line")
    assert (line["decision"], line["code"], bool(line["cause"])) == ("error", refused.json()["error"], True)
    # The answer is sent after both.
    assert "answered with an error" not in [one["message"] for one in said_of(gate, trace_of(refused))]


def test_a_reload_that_fails_tells_its_cause_under_the_trace_of_the_answer(gate: Gateway) -> None:
    broken = gate.log.parent / "actions" / "broken.yaml"
    broken.write_text("action_id: broken\nnonsense: 1\n")
    try:
        answer = gate.operator().post("/v1/admin/reload")
    finally:
        broken.unlink()
    assert (answer.status_code, answer.json()) == (500, {"error": "reload_failed"})

    def told() -> list[str]:
        return [line["message"] for line in said_of(gate, trace_of(answer)) if "broken.yaml" in json.dumps(line)]

    wanted = {"answered with an error", "the configuration was not reloaded; the previous one stays active"}
    wait_for(lambda: wanted <= set(told()), "its cause")


def test_who_looks_while_the_store_is_down_has_a_line_with_the_trace_of_the_answer(gate: Gateway) -> None:
    with damaged(gate, "proofs"):
        answer = gate.operator().get("/v1/admin/status")
    assert answer.status_code == 200
    (line,) = said_of(gate, trace_of(answer))
    assert (line["message"], bool(line["cause"])) == ("an operator's read was allowed while the store is down", True)


def test_the_uptime_is_the_gateway_s_whatever_becomes_of_its_front(gate: Gateway) -> None:
    operator = gate.operator()
    wait_for(lambda: operator.get("/v1/admin/status").json()["uptime_seconds"] >= 2, "two seconds")
    before = operator.get("/v1/admin/status").json()["uptime_seconds"]
    front = gate.child("front 1").pid
    os.kill(front, signal.SIGKILL)
    wait_for(lambda: gate.is_ready() and front not in [one.pid for one in gate.children("front")], "another front")
    assert gate.operator().get("/v1/admin/status").json()["uptime_seconds"] >= before
