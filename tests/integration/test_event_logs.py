"""Audit events as log records in whole gateways: what a collector gets, with several fronts, and after each end."""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.process.roles import EXPORTER
from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.otlp_receiver import Received, attributes, receiver
from tests.support.upstream import upstream

SECRET_TEXT = "a-value-of-the-request"


def ledger_of(gate: Gateway) -> list[dict[str, Any]]:
    """Every event of the ledger, the oldest first."""
    return gate.events(limit=1000)[::-1]


def events_of(received: Received, trace_id: str) -> list[dict[str, Any]]:
    return [event for event in received.events() if event.get("trace_id") == trace_id]


def wait_for_event(received: Received, trace_id: str) -> dict[str, Any]:
    wait_for(lambda: events_of(received, trace_id), f"the event of {trace_id}")
    return events_of(received, trace_id)[0]


def metric(gate: Gateway, name: str) -> int:
    def found() -> list[str]:
        return re.findall(rf"^{re.escape(name)} (\d+)", gate.operator().get("/metrics").text, re.MULTILINE)

    (count,) = wait_for(found, f"a scrape with {name}")
    return int(count)


@pytest.fixture(scope="module")
def collector() -> Iterator[Received]:
    with receiver() as received:
        yield received


@pytest.fixture(scope="module")
def gate(collector: Received, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    config = f'front_processes = 2\n[telemetry.otlp]\nendpoint = "{collector.endpoint}"\nsample = 0.000001\n'
    with upstream() as up, gateway(tmp_path_factory.mktemp("logs"), config_for(up.address, config)) as running:
        yield running


def test_each_event_of_several_fronts_is_exported_in_the_order_of_the_ledger(
    gate: Gateway, collector: Received
) -> None:
    answers = [gate.agent().execute("text_digest", {"text": SECRET_TEXT}) for _ in range(6)]
    wait_for_event(collector, answers[-1].headers["x-trace-id"])
    records = collector.records
    exported = list(dict.fromkeys(json.loads(record.body.string_value)["event_id"] for record in records))
    ledger = [event["event_id"] for event in ledger_of(gate)]
    assert exported == ledger[: len(exported)]
    assert exported[0] == ledger[0], "the start of the gateway is an event, too"
    positions = list(dict.fromkeys(attributes(record)["gateway.event.position"] for record in records))
    assert positions == list(range(1, len(exported) + 1))


def test_no_record_has_a_value_of_a_request_or_a_caller_s_token(gate: Gateway, collector: Received) -> None:
    agent = gate.agent()
    held = agent.execute("payment_transfer", {"to": SECRET_TEXT, "amount_cents": 7, "currency": "EUR"})
    assert held.status_code == 202, held.text
    wait_for_event(collector, held.json()["trace_id"])
    sent = b"".join(collector.event_bodies)
    for text in (SECRET_TEXT, agent.token):
        assert text.encode() not in sent


def test_events_are_counted_and_none_waits_in_the_end(gate: Gateway) -> None:
    exported = 'gate_otlp_events_total{outcome="exported"}'
    wait_for(lambda: metric(gate, "gate_otlp_events_waiting") == 0, "the export of all events")
    assert metric(gate, exported) >= len(ledger_of(gate)) - 5, "reading them may be an event"
    assert metric(gate, 'gate_otlp_events_total{outcome="dropped"}') == 0
    assert metric(gate, "gate_otlp_ledger_changes_total") == 0


@pytest.mark.parametrize("name", [EXPORTER, "notary"])
def test_after_the_end_of_a_process_the_export_goes_on_without_a_gap(
    gate: Gateway, collector: Received, name: str
) -> None:
    agent = gate.agent()
    wait_for(lambda: gate.children(name), name)
    os.kill(gate.child(name).pid, signal.SIGKILL)
    wait_for(lambda: agent.execute("text_digest", {"text": "x"}).status_code == 200, "a call after that")
    answer = agent.execute("text_digest", {"text": "x"})
    wait_for_event(collector, answer.headers["x-trace-id"])
    positions = {attributes(record)["gateway.event.position"] for record in collector.records}
    assert positions == set(range(1, max(positions) + 1))


def test_events_wait_for_a_collector_that_is_away_over_a_restart_of_the_gateway(tmp_path: Path) -> None:
    with receiver() as received:
        config = f'[telemetry.otlp]\nendpoint = "{received.endpoint}"\n'
        received.status = 503
        with gateway(tmp_path, config) as running:
            answer = running.agent().execute("text_digest", {"text": "x"})
            assert answer.status_code == 200
            wait_for(lambda: received.events_asked, "a request with events")
            assert metric(running, "gate_otlp_events_waiting") > 0
        received.status = 200
        with gateway(tmp_path, config) as running:
            wait_for_event(received, answer.headers["x-trace-id"])
            names = [event["event_type"] for event in received.events()]
            assert names[0] == "GatewayStarted"
            assert "GatewayStopped" in names
            place = running.state / "exported-events"
            wait_for(lambda: json.loads(place.read_bytes())[0]["seq"] > 0, "the place that is kept")
