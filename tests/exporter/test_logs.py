"""Audit events as log records of OTLP."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from exporter.logs import encoded_events
from ipc.evidence.events import AuditEvent
from tests.support.logs import capture_logs
from tests.support.otlp_receiver import attributes

TRACE = "trc_019a9a3b-0000-7000-8000-0123456789ab"


def stored(**given: Any) -> bytes:
    always = {"event_type": "ActionCall", "event_id": "evt_1", "timestamp": "2026-11-27T15:00:00.123Z"}
    return msgspec.json.encode(AuditEvent(**always | given))


def records(body: bytes) -> list[LogRecord]:
    (resource,) = ExportLogsServiceRequest.FromString(body).resource_logs
    (scope,) = resource.scope_logs
    assert {one.key: one.value.string_value for one in resource.resource.attributes} == {
        "service.name": "action-gateway", "service.version": "1.2.3",
    }  # fmt: skip
    return list(scope.log_records)


def record_of(**given: Any) -> LogRecord:
    body, left_out = encoded_events(7, [stored(**given)], "1.2.3")
    assert left_out == 0
    (record,) = records(body)
    return record


def test_a_record_has_the_stored_event_its_time_and_its_trace() -> None:
    record = record_of(trace_id=TRACE, reason="a “text” with\nlines")
    assert record.body.string_value.encode() == stored(trace_id=TRACE, reason="a “text” with\nlines")
    at = datetime(2026, 11, 27, 15, tzinfo=UTC)
    assert record.time_unix_nano == (int(at.timestamp()) * 1000 + 123) * 10**6
    assert record.trace_id.hex() == "019a9a3b0000700080000123456789ab"
    assert record.event_name == "gateway.ActionCall"


def test_attributes_repeat_what_a_search_asks_for_by_the_names_that_spans_have() -> None:
    record = record_of(
        principal="uid:7", session_id="ses_1", action_id="pay", action_version="2", risk_level="high", decision="allow",
        policy_rule="rule", policy_version="3", receipt_id="rcpt_1", intent_id="int_1", approval_id="apr_1",
        verification_outcome="verified", error_code="policy_denied",
    )  # fmt: skip
    assert attributes(record) == {
        "gateway.event.position": 7, "gateway.event.type": "ActionCall", "gateway.event.id": "evt_1",
        "gen_ai.tool.name": "pay", "gen_ai.agent.id": "uid:7", "session.id": "ses_1", "error.type": "policy_denied",
        "gateway.decision": "allow", "gateway.policy.rule": "rule", "gateway.policy.version": "3",
        "gateway.action.version": "2", "gateway.action.risk_level": "high", "gateway.receipt.id": "rcpt_1",
        "gateway.intent.id": "int_1", "gateway.verification.outcome": "verified", "gateway.approval.id": "apr_1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("event", "severity"),
    [
        ({"decision": "allow"}, "INFO"),
        ({"decision": "pending_approval"}, "INFO"),
        ({"decision": "deny"}, "WARN"),
        ({"decision": "error"}, "ERROR"),
        ({"event_type": "GatewayStarted"}, "INFO"),
        ({"event_type": "ClockAccepted"}, "WARN"),
        ({"event_type": "RollbackAccepted"}, "WARN"),
        ({"event_type": "BudgetRollbackFailed"}, "WARN"),
        ({"event_type": "OperatorAuthFailed", "decision": "deny"}, "WARN"),
    ],
)
def test_the_severity_is_that_of_the_decision_or_of_what_an_operator_is_to_see(
    event: dict[str, str], severity: str
) -> None:
    assert record_of(**event).severity_text == severity


def test_a_stored_row_that_is_no_event_is_left_out_and_told_and_the_others_keep_their_positions() -> None:
    broken = (b"\xff", b"{}", stored(timestamp="yesterday"), stored(trace_id="trc_zz"))
    with capture_logs() as lines:
        body, left_out = encoded_events(1, [stored(), *broken, stored()], "1.2.3")
    assert left_out == len(broken)
    assert [attributes(one)["gateway.event.position"] for one in records(body)] == [1, 6]
    told = [line["position"] for line in lines if line["event"] == "an event could not be encoded"]
    assert told == [2, 3, 4, 5]


TRACE_SPAN = "80000123456789ab"
APPROVAL = "apr_019a9a3b-0000-7000-9111-222222222222"


@pytest.mark.parametrize(
    ("event", "span_id"),
    [
        ({"decision": "allow"}, TRACE_SPAN),
        ({"decision": "pending_approval", "approval_id": APPROVAL}, "9111222222222222"),
        ({"decision": "allow", "approval_id": APPROVAL}, TRACE_SPAN),
        ({"event_type": "ApprovalDenied", "approval_id": APPROVAL}, TRACE_SPAN),
        ({"event_type": "ApprovalExpired", "approval_id": APPROVAL}, ""),
        ({"decision": "deny", "principal": None}, ""),
    ],
    ids=["call", "hold", "end of a hold", "denied", "expired", "a caller who has proven nothing"],
)
def test_the_record_of_a_call_names_its_span_and_another_record_none(
    event: dict[str, str | None], span_id: str
) -> None:
    record = record_of(**{"trace_id": TRACE, "principal": "uid:7"} | event)
    assert record.span_id.hex() == span_id
