"""Audit events as log records of OTLP, by the official package.

The body is the event as it stands in the ledger; attributes repeat what a search asks for, by the names that spans have
(exporter/spans.py). SECURITY: an event has commitments to kept values and never the values.
"""

import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs, SeverityNumber

from exporter.span_ids import call_span_id, hold_span_id, trace_id_of
from exporter.spans import HELD, SCOPE, attribute
from frontend.telemetry.logs import log
from ipc.evidence.events import (
    ACTION_CALL,
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    BUDGET_ROLLBACK_FAILED,
    CLOCK_ACCEPTED,
    OPERATOR_AUTH_FAILED,
    ROLLBACK_ACCEPTED,
)
from ipc.process.clock import parse_iso

_ERROR: Final = (SeverityNumber.SEVERITY_NUMBER_ERROR, "ERROR")
_WARN: Final = (SeverityNumber.SEVERITY_NUMBER_WARN, "WARN")
_INFO: Final = (SeverityNumber.SEVERITY_NUMBER_INFO, "INFO")
_BY_DECISION: Final = {"error": _ERROR, "deny": _WARN}
_WARNINGS: Final = frozenset({BUDGET_ROLLBACK_FAILED, CLOCK_ACCEPTED, OPERATOR_AUTH_FAILED, ROLLBACK_ACCEPTED})
"""Types of events that an operator should see."""
_OF_CALLS: Final = frozenset({ACTION_CALL, APPROVAL_DENIED, APPROVAL_GRANTED})
"""Types of events of a call that has a span."""
_MOST_KINDS: Final = 4096
"""Records without ids and times that are kept: one for each action, caller and outcome of late."""
_TO_THE_SECOND: Final = len("2026-11-27T15:00:00")
_MILLISECONDS: Final = re.compile(r"\.[0-9]{3}Z")


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

    def span_id(self, trace_id: bytes) -> bytes:
        """The id of the span of its call; empty for an event of another kind, and of a caller who has proven nothing.
        Raises ValueError."""
        if self.event_type not in _OF_CALLS or self.principal is None:
            return b""
        return hold_span_id(self.approval_id or "") if self.decision == HELD else call_span_id(trace_id)


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
    records = scope.log_records
    for position, stored in enumerate(events, first):
        before = len(records)
        try:
            _add(scope, position, stored, seen_at)
        except ValueError as error:  # msgspec's and UTF-8's errors are ValueErrors
            log.error("an event could not be encoded", position=position, why=type(error).__name__)
            del records[before:]
            left_out += 1
    return bytes(request.SerializeToString()), left_out


def _add(scope: ScopeLogs, position: int, stored: bytes, seen_at: int) -> None:
    event = _decode(stored)
    record = scope.log_records.add()
    record.CopyFrom(
        _record(
            event.event_type, event.principal, event.action_id, event.action_version, event.risk_level, event.decision,
            event.error_code, event.policy_rule, event.policy_version, event.verification_outcome,
        )
    )  # fmt: skip
    if event.trace_id is not None:
        trace_id = trace_id_of(event.trace_id)
        record.trace_id, record.span_id = trace_id, event.span_id(trace_id)
    record.time_unix_nano, record.observed_time_unix_nano = _nanoseconds(event.timestamp), seen_at
    record.body.string_value = stored.decode()
    attributes = record.attributes
    attributes.add(key="gateway.event.position").value.int_value = position
    attributes.add(key="gateway.event.id").value.string_value = event.event_id
    if event.session_id:
        attributes.add(key="session.id").value.string_value = event.session_id
    if event.receipt_id:
        attributes.add(key="gateway.receipt.id").value.string_value = event.receipt_id
    if event.intent_id:
        attributes.add(key="gateway.intent.id").value.string_value = event.intent_id
    if event.approval_id:
        attributes.add(key="gateway.approval.id").value.string_value = event.approval_id


@lru_cache(_MOST_KINDS)
def _record(
    event_type: str, principal: str | None, action_id: str | None, version: str | None, risk_level: str | None,
    decision: str | None, code: str | None, rule: str | None, policy_version: str | None, verification: str | None,
) -> LogRecord:  # fmt: skip
    """The record of an event without what only this event has: ids, times and session."""
    number, text = _BY_DECISION.get(decision or "", _WARN if event_type in _WARNINGS else _INFO)
    given = {
        "gateway.event.type": event_type, "gen_ai.tool.name": action_id, "gen_ai.agent.id": principal,
        "error.type": code, "gateway.decision": decision, "gateway.policy.rule": rule,
        "gateway.policy.version": policy_version, "gateway.action.version": version,
        "gateway.action.risk_level": risk_level, "gateway.verification.outcome": verification,
    }  # fmt: skip
    return LogRecord(
        severity_number=number, severity_text=text, event_name=f"gateway.{event_type}",
        attributes=[attribute(key, value) for key, value in given.items() if value],
    )  # fmt: skip


def _nanoseconds(timestamp: str) -> int:
    """The time of an event since 1970. Raises ValueError."""
    seconds, milliseconds = timestamp[:_TO_THE_SECOND], timestamp[_TO_THE_SECOND:]
    if not _MILLISECONDS.fullmatch(milliseconds):
        raise ValueError("not a time in milliseconds")
    return (_seconds(seconds) * 1000 + int(milliseconds[1:-1])) * 1_000_000


@lru_cache(16)
def _seconds(text: str) -> int:
    return int(parse_iso(text))
