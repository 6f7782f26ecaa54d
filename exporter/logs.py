"""Audit events as log records of OTLP, by the official package.

The body is the event as it stands in the ledger; attributes repeat what a search asks for, by the names that spans have
(exporter/spans.py). SECURITY: an event has commitments to kept values and never the values.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber

from exporter.spans import SCOPE, trace_id_of
from frontend.telemetry.logs import log
from ipc.events import BUDGET_ROLLBACK_FAILED, CLOCK_ACCEPTED, OPERATOR_AUTH_FAILED, ROLLBACK_ACCEPTED
from ipc.process.clock import parse_iso

_ERROR: Final = (SeverityNumber.SEVERITY_NUMBER_ERROR, "ERROR")
_WARN: Final = (SeverityNumber.SEVERITY_NUMBER_WARN, "WARN")
_INFO: Final = (SeverityNumber.SEVERITY_NUMBER_INFO, "INFO")
_BY_DECISION: Final = {"error": _ERROR, "deny": _WARN}
_WARNINGS: Final = frozenset({BUDGET_ROLLBACK_FAILED, CLOCK_ACCEPTED, OPERATOR_AUTH_FAILED, ROLLBACK_ACCEPTED})
"""Types of events that an operator should see."""


class NamedEvent(msgspec.Struct, frozen=True):
    """The parts of a stored event that attributes repeat."""

    event_type: str
    event_id: str
    timestamp: str
    trace_id: str | None = None
    principal: str | None = None
    session_id: str | None = None
    action_id: str | None = None
    action_version: str | None = None
    risk_level: str | None = None
    policy_rule: str | None = None
    policy_version: str | None = None
    decision: str | None = None
    error_code: str | None = None
    receipt_id: str | None = None
    intent_id: str | None = None
    verification_outcome: str | None = None
    approval_id: str | None = None

    def attributes(self) -> Iterator[tuple[str, str | None]]:
        """Names and values; None for one that does not apply."""
        yield "gateway.event.id", self.event_id
        yield "gen_ai.tool.name", self.action_id
        yield "gen_ai.agent.id", self.principal
        yield "session.id", self.session_id
        yield "error.type", self.error_code
        yield "gateway.decision", self.decision
        yield "gateway.policy.rule", self.policy_rule
        yield "gateway.policy.version", self.policy_version
        yield "gateway.action.version", self.action_version
        yield "gateway.action.risk_level", self.risk_level
        yield "gateway.receipt.id", self.receipt_id
        yield "gateway.intent.id", self.intent_id
        yield "gateway.verification.outcome", self.verification_outcome
        yield "gateway.approval.id", self.approval_id


_decode = msgspec.json.Decoder(NamedEvent).decode


def encoded_events(first: int, events: Sequence[bytes], version: str) -> tuple[bytes, int]:
    """The body of a request to `/v1/logs`, and the number of events that can't be encoded, which are left out. `first`
    is the position of the first one."""
    request = ExportLogsServiceRequest()
    resource = request.resource_logs.add()
    for key, value in (("service.name", SCOPE), ("service.version", version)):
        resource.resource.attributes.add(key=key).value.string_value = value
    scope = resource.scope_logs.add()
    scope.scope.name, scope.scope.version = SCOPE, version
    seen_at, left_out = time.time_ns(), 0
    for position, stored in enumerate(events, first):
        try:
            scope.log_records.append(_record(position, stored, seen_at))
        except ValueError as error:  # msgspec's and UTF-8's errors are ValueErrors
            log.error("an event could not be encoded", position=position, why=type(error).__name__)
            left_out += 1
    return bytes(request.SerializeToString()), left_out


def _record(position: int, stored: bytes, seen_at: int) -> LogRecord:
    event = _decode(stored)
    number, text = _BY_DECISION.get(event.decision or "", _WARN if event.event_type in _WARNINGS else _INFO)
    record = LogRecord(
        time_unix_nano=round(parse_iso(event.timestamp) * 1000) * 1_000_000, observed_time_unix_nano=seen_at,
        severity_number=number, severity_text=text, event_name=f"gateway.{event.event_type}",
        trace_id=b"" if event.trace_id is None else trace_id_of(event.trace_id),
    )  # fmt: skip
    record.body.string_value = stored.decode()
    record.attributes.add(key="gateway.event.position").value.int_value = position
    record.attributes.add(key="gateway.event.type").value.string_value = event.event_type
    for key, value in event.attributes():
        if value:
            record.attributes.add(key=key).value.string_value = value
    return record
