"""Calls as the package of OpenTelemetry reads them again."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from exporter.spans import encoded
from ipc.messages.exporting import ExportedCall, HostCallSpan, TimedStep
from tests.support.otlp_receiver import attributes

TRACE_ID = "trc_019a9a3b-0000-7000-8000-0123456789ab"
ENDED_AT = 1_764_252_000_000_000_000


def call(**changes: object) -> ExportedCall:
    given = {"trace_id": TRACE_ID, "ended_at": ENDED_AT, "took": 5000, "principal": "uid:1000", "session_id": "ses_1",
             "action_id": "text_digest", "decision": "allow"} | changes  # fmt: skip
    return ExportedCall(**given)  # type: ignore[arg-type]


def spans_of(*calls: ExportedCall) -> list[Span]:
    (resource,) = ExportTraceServiceRequest.FromString(encoded(calls, "1.2.3")[0]).resource_spans
    return list(resource.scope_spans[0].spans)


def test_the_trace_id_is_that_of_the_gateway() -> None:
    (span,) = spans_of(call())
    assert span.trace_id.hex() == "019a9a3b0000700080000123456789ab"


def test_the_span_of_a_call_has_an_id_of_its_trace_s_random_half_and_each_other_one_a_fresh_id() -> None:
    steps = (TimedStep("policy", 1, 2), TimedStep("worker", 2, 3))
    one = call(steps=steps, host_calls=(HostCallSpan("http", "GET", 2, 3),))
    first, again = spans_of(one), spans_of(one)
    assert first[0].span_id.hex() == again[0].span_id.hex() == "80000123456789ab"
    ids = {span.span_id for span in (*first, *again)}
    assert len(ids) == 7
    assert {len(one) for one in ids} == {8}


def test_a_call_has_names_of_the_conventions_for_generative_ai() -> None:
    (span,) = spans_of(call(rule="allow"))
    assert (span.name, span.kind) == ("execute_tool text_digest", Span.SPAN_KIND_SERVER)
    assert attributes(span) == {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "text_digest", "gen_ai.tool.type": "extension",
        "gen_ai.agent.id": "uid:1000", "gateway.decision": "allow", "gateway.policy.rule": "allow",
        "session.id": "ses_1",
    }  # fmt: skip


def test_a_step_stands_at_its_time_below_its_call() -> None:
    root, step = spans_of(call(steps=(TimedStep("policy", 1000, 2500),)))
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (ENDED_AT - 5_000_000, ENDED_AT)
    assert (step.name, step.parent_span_id, step.trace_id) == ("policy", root.span_id, root.trace_id)
    assert step.start_time_unix_nano == ENDED_AT - 4_000_000
    assert step.end_time_unix_nano == ENDED_AT - 2_500_000


@pytest.mark.parametrize(
    ("decision", "code", "status"),
    [
        ("error", "action_execution_failed", Status.STATUS_CODE_ERROR),
        ("deny", "policy_denied", Status.STATUS_CODE_UNSET),
        ("pending_approval", "", Status.STATUS_CODE_UNSET),
    ],
)
def test_only_a_call_that_failed_is_an_error(decision: str, code: str, status: int) -> None:
    (span,) = spans_of(call(decision=decision, code=code))
    assert span.status.code == status
    assert attributes(span).get("error.type", "") == code


def test_two_calls_of_one_kind_have_their_own_identifiers() -> None:
    another = TRACE_ID.replace("ab", "cd")
    first, second = spans_of(call(receipt_id="rcpt_1"), call(trace_id=another, receipt_id="rcpt_2", session_id="ses_2"))
    assert first.span_id != second.span_id
    assert attributes(first)["gateway.receipt.id"] == "rcpt_1"
    assert attributes(second)["gateway.receipt.id"] == "rcpt_2"
    assert attributes(second)["session.id"] == "ses_2"


def test_a_call_that_can_t_be_encoded_costs_no_other_call_its_spans() -> None:
    steps = (TimedStep("policy", 1, 2), TimedStep("worker", -(2**62), 3))
    body, left_out = encoded((call(steps=steps), call(receipt_id="rcpt_2")), "1.2.3")
    assert left_out == 3
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    (span,) = resource.scope_spans[0].spans
    assert attributes(span)["gateway.receipt.id"] == "rcpt_2"


def test_a_request_to_the_upstream_stands_below_the_worker() -> None:
    requests = (HostCallSpan("http", "POST", 2000, 3000, 503), HostCallSpan("fs", "write", 3000, 3500, error="denied"))
    _, worker, http, file = spans_of(call(steps=(TimedStep("worker", 1000, 4000),), host_calls=requests))
    assert {http.parent_span_id, file.parent_span_id} == {worker.span_id}
    assert (http.name, http.kind, file.name) == ("POST", Span.SPAN_KIND_CLIENT, "fs write")
    assert attributes(http) == {
        "http.request.method": "POST", "http.response.status_code": 503, "error.type": "503",
    }  # fmt: skip
    assert attributes(file) == {"gateway.fs.operation": "write", "error.type": "denied"}


def test_the_end_of_a_held_call_is_linked_to_the_span_of_its_hold() -> None:
    approval_id = "apr_019a9a3b-0000-7000-9111-222222222222"
    held, ended = spans_of(
        call(decision="pending_approval", approval_id=approval_id), call(approval_id=approval_id, receipt_id="rcp_1")
    )
    assert not held.links
    (link,) = ended.links
    assert (link.trace_id, link.span_id) == (held.trace_id, held.span_id)
    assert ended.span_id != held.span_id
