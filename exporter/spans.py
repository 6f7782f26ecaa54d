"""Calls as spans of OTLP, by the official package.

Names of spans and attributes are those of OpenTelemetry's semantic conventions for generative AI, MCP and HTTP; the
gateway's own begin with `gateway.`. SECURITY: every text is a name or an identifier that the gateway has checked: no
value of a request, no secret, no address.
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span, Status

from exporter.span_ids import SPAN_ID_BYTES, call_span_id, hold_span_id, trace_id_of
from frontend.telemetry.logs import log
from ipc.messages.exporting import WORKER, ExportedCall

SCOPE: Final = "action-gateway"
_EXECUTE: Final = "execute_tool"
_FIRST_ERROR: Final = 400
_FAILED: Final = "error"
"""The decision of a call that failed; a denied or held call was answered as policy says."""
HELD: Final = "pending_approval"
"""The decision of a call that waits for an operator."""
_MOST_NAMES: Final = 4096
"""Spans without times that are kept: one for each action, caller and outcome of late."""


def encoded(calls: Iterable[ExportedCall], version: str) -> tuple[bytes, int]:
    """The body of a request to `/v1/traces`, and the number of spans that can't be encoded: those of their call alone
    are left out."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(
        (attribute("service.name", SCOPE), attribute("service.version", version))
    )  # fmt: skip
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = SCOPE, version
    left_out = 0
    for call in calls:
        before = len(scope.spans)
        try:
            _add(scope, call)
        except ValueError as error:
            log.error("a call could not be encoded: internal error", why=type(error).__name__, trace_id=call.trace_id)
            del scope.spans[before:]
            left_out += call.spans
    return bytes(request.SerializeToString()), left_out


def _add(scope: ScopeSpans, call: ExportedCall) -> None:
    spans = scope.spans
    trace_id, held_id = trace_id_of(call.trace_id), hold_span_id(call.approval_id)
    is_held = call.decision == HELD
    root_id = held_id if is_held else call_span_id(trace_id)
    begun_at = call.ended_at - call.took * 1000
    root = spans.add()
    root.CopyFrom(
        _root(
            call.action_id, call.action_version, call.risk_level, call.principal, call.decision, call.code, call.rule,
            call.policy_version, call.verification, is_mcp=call.is_mcp,
        )
    )  # fmt: skip
    root.trace_id, root.span_id = trace_id, root_id
    root.start_time_unix_nano, root.end_time_unix_nano = begun_at, call.ended_at
    attributes = root.attributes
    if call.session_id:
        attributes.add(key="session.id").value.string_value = call.session_id
    if call.receipt_id:
        attributes.add(key="gateway.receipt.id").value.string_value = call.receipt_id
    if call.approval_id:
        attributes.add(key="gateway.approval.id").value.string_value = call.approval_id
    if call.traceparent:
        _, linked, linked_span, flags = call.traceparent.split("-")[:4]
        root.links.add(trace_id=bytes.fromhex(linked), span_id=bytes.fromhex(linked_span), flags=int(flags, 16))
    if held_id and not is_held:
        root.links.add(trace_id=trace_id, span_id=held_id)
    worker_id, drawn, at = root_id, os.urandom((call.spans - 1) * SPAN_ID_BYTES), 0
    for step in call.steps:
        span = spans.add()
        span.CopyFrom(_child(step.step))
        span_id = drawn[at : at + SPAN_ID_BYTES]
        span.trace_id, span.parent_span_id, span.span_id = trace_id, root_id, span_id
        span.start_time_unix_nano = begun_at + step.begins * 1000
        span.end_time_unix_nano = begun_at + step.ends * 1000
        if step.step == WORKER:
            worker_id = span_id
        at += SPAN_ID_BYTES
    for one in call.host_calls:
        span = spans.add()
        span.CopyFrom(_host_call(one.kind, one.operation, one.status, one.error))
        span.trace_id, span.parent_span_id, span.span_id = trace_id, worker_id, drawn[at : at + SPAN_ID_BYTES]
        span.start_time_unix_nano = begun_at + one.begins * 1000
        span.end_time_unix_nano = begun_at + one.ends * 1000
        at += SPAN_ID_BYTES


@lru_cache(_MOST_NAMES)
def _root(
    action_id: str, version: str, risk_level: str, principal: str, decision: str, code: str, rule: str,
    policy_version: str, verification: str, *, is_mcp: bool,
) -> Span:  # fmt: skip
    """The span of a call without what only this call has: ids, times and session."""
    given = {
        "gen_ai.operation.name": _EXECUTE, "gen_ai.tool.name": action_id, "gen_ai.tool.type": "extension",
        "gen_ai.agent.id": principal, "gateway.action.version": version,
        "mcp.method.name": "tools/call" if is_mcp else "",
        "gateway.decision": decision, "gateway.policy.rule": rule, "error.type": code,
        "gateway.action.risk_level": risk_level, "gateway.policy.version": policy_version,
        "gateway.verification.outcome": verification,
    }  # fmt: skip
    span = Span(
        name=f"{_EXECUTE} {action_id}" if action_id else _EXECUTE, kind=Span.SPAN_KIND_SERVER,
        attributes=[attribute(key, value) for key, value in given.items() if value],
    )  # fmt: skip
    if decision == _FAILED:
        span.status.code = Status.STATUS_CODE_ERROR
    return span


@lru_cache(64)
def _child(step: str) -> Span:
    """The span of a step without ids and times."""
    return Span(name=step, kind=Span.SPAN_KIND_INTERNAL)


@lru_cache(_MOST_NAMES)
def _host_call(kind: str, operation: str, status: int, error: str) -> Span:
    """The span of a host call without ids and times."""
    is_http = kind == "http"
    span = Span(
        name=operation if is_http else f"{kind} {operation}",
        kind=Span.SPAN_KIND_CLIENT if is_http else Span.SPAN_KIND_INTERNAL,
        attributes=[attribute("http.request.method" if is_http else "gateway.fs.operation", operation)],
    )  # fmt: skip
    if status:
        span.attributes.add(key="http.response.status_code").value.int_value = status
    problem = error or (str(status) if status >= _FIRST_ERROR else "")
    if problem:
        span.attributes.append(attribute("error.type", problem))
        span.status.code = Status.STATUS_CODE_ERROR
    return span


def attribute(key: str, value: str) -> KeyValue:
    """An attribute with a text."""
    made = KeyValue(key=key)
    made.value.string_value = value
    return made
