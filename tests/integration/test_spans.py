"""Spans of calls in a whole gateway: what a collector gets, and that no call waits for it."""

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
