"""Spans of calls in a whole gateway: what a collector gets, and that no call waits for it."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.roles import EXPORTER
from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.otlp_receiver import Received, attributes, receiver
from tests.support.upstream import upstream

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
SECRET_TEXT = "a-value-of-the-request"


def dropped(gate: Gateway) -> int:
    text = gate.operator().get("/metrics").text
    (count,) = re.findall(r'^gate_otlp_spans_total\{outcome="dropped"\} (\d+)', text, re.MULTILINE)
    return int(count)


@pytest.fixture(scope="module")
def collector() -> Iterator[Received]:
    with receiver() as received:
        yield received


@pytest.fixture(scope="module")
def gate(collector: Received, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("spans")
    headers = folder / "headers"
    headers.touch(mode=0o600)
    headers.write_text("Authorization: Bearer of-the-collector\n")
    config = f'[telemetry.otlp]\nendpoint = "{collector.endpoint}"\nheaders_file = "{headers}"\n'
    with upstream() as up, gateway(folder, config_for(up.address, config)) as running:
        yield running


def test_a_call_becomes_a_trace_of_its_own_id_with_its_steps(gate: Gateway, collector: Received) -> None:
    answer = gate.agent().execute("text_digest", {"text": SECRET_TEXT})
    trace_id, spans = answer.headers["x-trace-id"], collector.trace(answer.headers["x-trace-id"])
    assert set(spans) == {"execute_tool text_digest", "policy", "notary open", "worker", "notary close"}, trace_id
    root = spans.pop("execute_tool text_digest")
    told = attributes(root)
    assert told["gen_ai.operation.name"] == "execute_tool"
    assert told["gen_ai.tool.name"] == "text_digest"
    assert told["gateway.decision"] == "allow"
    assert told["gateway.receipt.id"] == answer.json()["receipt_id"]
    assert root.start_time_unix_nano < root.end_time_unix_nano
    for span in spans.values():
        assert span.parent_span_id == root.span_id
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    assert collector.headers[0]["authorization"] == "Bearer of-the-collector"


def test_a_request_to_the_upstream_is_a_span_of_the_worker_s(gate: Gateway, collector: Received) -> None:
    answer = gate.agent().execute("http_post", {"path": "messages", "message": SECRET_TEXT})
    assert answer.status_code == 200, answer.text
    spans = collector.trace(answer.headers["x-trace-id"])
    worker, request = spans["worker"], spans["POST"]
    assert attributes(request) == {"http.request.method": "POST", "http.response.status_code": 200}
    assert request.parent_span_id == worker.span_id
    assert worker.start_time_unix_nano <= request.start_time_unix_nano < request.end_time_unix_nano
    assert request.end_time_unix_nano <= worker.end_time_unix_nano


def test_the_trace_of_a_caller_becomes_a_link(gate: Gateway, collector: Received) -> None:
    agent = gate.agent()
    path = "/v1/actions/text_digest/execute"
    headers = agent.headers("POST", path) | {"traceparent": CALLER, "content-type": "application/json"}
    answer = agent.http.post(path, headers=headers, content=json.dumps({"text": "x"}))
    root = collector.trace(answer.headers["x-trace-id"])["execute_tool text_digest"]
    (link,) = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == tuple(CALLER.split("-")[1:3])


def test_a_held_call_and_its_approval_are_two_spans_of_one_trace(gate: Gateway, collector: Received) -> None:
    held = gate.agent().execute("payment_transfer", {"to": "a", "amount_cents": 1, "currency": "EUR"})
    assert held.status_code == 202, held.text
    trace_id = held.json()["trace_id"]
    spans = collector.trace(trace_id)
    assert set(spans) == {"execute_tool payment_transfer", "policy", "notary hold"}
    told = attributes(spans["execute_tool payment_transfer"])
    assert (told["gateway.decision"], told["gateway.approval.id"]) == ("pending_approval", held.json()["approval_id"])
    gate.operator().post(f"/v1/approvals/{held.json()['approval_id']}/approve")
    wait_for(lambda: len(collector.roots(trace_id)) == 2, "the span of the approved call")
    held_span, ended = collector.roots(trace_id)
    assert attributes(ended)["gateway.decision"] != "pending_approval"
    assert [link.span_id for link in ended.links] == [held_span.span_id]
    assert "notary claim" in collector.trace(trace_id)


def test_a_held_call_that_an_operator_denies_ends_with_a_span_of_its_trace(gate: Gateway, collector: Received) -> None:
    held = gate.agent().execute("payment_transfer", {"to": "b", "amount_cents": 1, "currency": "EUR"}).json()
    gate.operator().post(f"/v1/approvals/{held['approval_id']}/deny")
    wait_for(lambda: len(collector.roots(held["trace_id"])) == 2, "the span of the denial")
    told = attributes(collector.roots(held["trace_id"])[1])
    assert (told["gateway.decision"], told["error.type"]) == ("deny", "approval_denied")


def test_records_of_events_name_the_spans_of_a_held_call_and_of_its_end(gate: Gateway, collector: Received) -> None:
    held = gate.agent().execute("payment_transfer", {"to": "c", "amount_cents": 1, "currency": "EUR"}).json()
    gate.operator().post(f"/v1/approvals/{held['approval_id']}/deny")
    wait_for(lambda: len(collector.roots(held["trace_id"])) == 2, "the span of the denial")
    roots = collector.roots(held["trace_id"])

    def named() -> list[bytes]:
        return [record.span_id for record in collector.records if record.trace_id == roots[0].trace_id]

    wait_for(lambda: len(named()) == 2, "both events")
    assert named() == [span.span_id for span in roots]


def test_no_span_has_a_value_of_a_request_or_a_caller_s_token(gate: Gateway, collector: Received) -> None:
    agent = gate.agent()
    answer = agent.execute("text_digest", {"text": SECRET_TEXT})
    unknown = agent.execute("an-id-of-the-caller", {"text": "x"})
    collector.trace(answer.headers["x-trace-id"])
    collector.trace(unknown.headers["x-trace-id"])
    sent = b"".join(collector.bodies)
    for text in (SECRET_TEXT, agent.token, "of-the-collector", "an-id-of-the-caller"):
        assert text.encode() not in sent


def test_calls_go_on_while_the_collector_hangs_and_dropped_spans_are_counted(tmp_path: Path) -> None:
    with receiver() as received:
        received.status = 400
        config = f'[telemetry.otlp]\nendpoint = "{received.endpoint}"\n'
        with gateway(tmp_path, config) as running:
            wait_for(lambda: running.children(EXPORTER), "the exporter")
            received.goes_on.clear()
            agent = running.agent()
            for _ in range(3):
                assert agent.execute("text_digest", {"text": "x"}).status_code == 200
            assert dropped(running) == 0
            received.goes_on.set()
            wait_for(lambda: dropped(running) == 15, "the dropped spans")
            assert agent.execute("text_digest", {"text": "x"}).status_code == 200


def test_an_exporter_that_is_killed_has_a_successor_which_exports(gate: Gateway, collector: Received) -> None:
    wait_for(lambda: gate.children(EXPORTER), "the exporter")
    os.kill(gate.child(EXPORTER).pid, signal.SIGKILL)
    answer = gate.agent().execute("text_digest", {"text": "x"})
    assert answer.status_code == 200
    assert collector.trace(answer.headers["x-trace-id"])
