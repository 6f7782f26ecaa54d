"""Calls as spans of OTLP, by the official package.

Names of spans and attributes are those of OpenTelemetry's semantic conventions for generative AI, MCP and HTTP; the
gateway's own begin with `gateway.`. SECURITY: every text is a name or an identifier that the gateway has checked: no
value of a request, no secret, no address.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from frontend.telemetry.logs import log
from ipc.messages.exporting import WORKER, ExportedCall

SCOPE: Final = "action-gateway"
_EXECUTE: Final = "execute_tool"
_SPAN_ID_BYTES: Final = 8
_FIRST_ERROR: Final = 400
_FAILED: Final = "error"
"""The decision of a call that failed; a denied or held call was answered as policy says."""
_HELD: Final = "pending_approval"
_MOST_NAMES: Final = 4096
"""Spans without times that are kept: one for each action, caller and outcome of late."""


def encoded(calls: Iterable[ExportedCall], version: str) -> tuple[bytes, int]:
    """The body of a request to `/v1/traces`, and the number of spans that can't be encoded: those of their call alone
    are left out."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(
        (_attribute("service.name", SCOPE), _attribute("service.version", version))
    )  # fmt: skip
    scope = resource.scope_spans.add()
    scope.scope.name, scope.scope.version = SCOPE, version
    left_out = 0
    for call in calls:
        before = len(scope.spans)
        try:
            _add(scope.spans, call)
        except ValueError as error:
            log.error("a call could not be encoded: internal error", why=type(error).__name__, trace_id=call.trace_id)
            del scope.spans[before:]
            left_out += call.spans
    return bytes(request.SerializeToString()), left_out


def trace_id_of(name: str) -> bytes:
    """The 16 bytes of a trace id of the gateway. Raises ValueError."""
    found = bytes.fromhex(name.removeprefix("trc_").replace("-", ""))
    if len(found) != 16:
        raise ValueError("not a trace id")
    return found


def _add(spans: "Iterable[Span]", call: ExportedCall) -> None:
    trace_id, ids = trace_id_of(call.trace_id), _span_ids(call.spans)
    root_id, held_id = next(ids), _id_of_hold(call.approval_id)
    is_held = call.decision == _HELD
    if is_held:
        root_id = held_id
    begun_at = call.ended_at - call.took * 1000
    root = spans.add()  # type: ignore[attr-defined]  # a repeated field
    facts = (call.action_id, call.action_version, call.principal, call.decision, call.code, call.rule)
    root.CopyFrom(_root(*facts, is_mcp=call.is_mcp))
    root.trace_id, root.span_id = trace_id, root_id
    root.start_time_unix_nano, root.end_time_unix_nano = begun_at, call.ended_at
    for key, value in _own(call):
        root.attributes.add(key=key).value.string_value = value
    if call.traceparent:
        _, linked, span_id, flags = call.traceparent.split("-")[:4]
        root.links.add(trace_id=bytes.fromhex(linked), span_id=bytes.fromhex(span_id), flags=int(flags, 16))
    if held_id and not is_held:
        root.links.add(trace_id=trace_id, span_id=held_id)
    worker_id = root_id
    for step in call.steps:
        span = spans.add()  # type: ignore[attr-defined]
        span.CopyFrom(_child(step.step))
        span.trace_id, span.parent_span_id, span.span_id = trace_id, root_id, next(ids)
        worker_id = span.span_id if step.step == WORKER else worker_id
        span.start_time_unix_nano = begun_at + step.begins * 1000
        span.end_time_unix_nano = begun_at + step.ends * 1000

    for one in call.host_calls:
        span = spans.add()  # type: ignore[attr-defined]
        span.CopyFrom(_host_call(one.kind, one.operation, one.status, one.error))
        span.trace_id, span.parent_span_id, span.span_id = trace_id, worker_id, next(ids)
        span.start_time_unix_nano = begun_at + one.begins * 1000
        span.end_time_unix_nano = begun_at + one.ends * 1000


def _span_ids(count: int) -> Iterator[bytes]:
    """`count` fresh identifiers, by one system call."""
    drawn = os.urandom(count * _SPAN_ID_BYTES)
    return (drawn[at : at + _SPAN_ID_BYTES] for at in range(0, len(drawn), _SPAN_ID_BYTES))


def _id_of_hold(approval_id: str) -> bytes:
    """The id of the span of a held call: the random half of its approval's id, so that every front and each successor
    of this process links to the same span; empty without an approval. Raises ValueError."""
    return bytes.fromhex(approval_id.replace("-", "")[-2 * _SPAN_ID_BYTES :])


def _own(call: ExportedCall) -> Iterator[tuple[str, str]]:
    """Attributes that differ from call to call."""
    if call.session_id:
        yield "session.id", call.session_id
    if call.receipt_id:
        yield "gateway.receipt.id", call.receipt_id
    if call.approval_id:
        yield "gateway.approval.id", call.approval_id
    if call.verification:
        yield "gateway.verification.outcome", call.verification
    if call.policy_version:
        yield "gateway.policy.version", call.policy_version
    if call.risk_level:
        yield "gateway.action.risk_level", call.risk_level


@lru_cache(_MOST_NAMES)
def _root(action_id: str, version: str, principal: str, decision: str, code: str, rule: str, *, is_mcp: bool) -> Span:
    """The span of a call without ids and times."""
    given = {
        "gen_ai.operation.name": _EXECUTE, "gen_ai.tool.name": action_id, "gen_ai.tool.type": "extension",
        "gen_ai.agent.id": principal, "gateway.action.version": version,
        "mcp.method.name": "tools/call" if is_mcp else "",
        "gateway.decision": decision, "gateway.policy.rule": rule, "error.type": code,
    }  # fmt: skip
    span = Span(
        name=f"{_EXECUTE} {action_id}" if action_id else _EXECUTE, kind=Span.SPAN_KIND_SERVER,
        attributes=[_attribute(key, value) for key, value in given.items() if value],
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
        attributes=[_attribute("http.request.method" if is_http else "gateway.fs.operation", operation)],
    )  # fmt: skip
    if status:
        span.attributes.add(key="http.response.status_code").value.int_value = status
    problem = error or (str(status) if status >= _FIRST_ERROR else "")
    if problem:
        span.attributes.append(_attribute("error.type", problem))
        span.status.code = Status.STATUS_CODE_ERROR
    return span


def _attribute(key: str, value: str) -> KeyValue:
    made = KeyValue(key=key)
    made.value.string_value = value
    return made
