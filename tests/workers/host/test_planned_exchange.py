"""The planned request of the built-in http provider: the intent's id that it sends, and the parts of its answer."""

import json
from typing import Any

from ipc.messages.calling import Result
from ipc.plan import INTENT_ID, PlannedRequest, ResponseRules
from tests.support.worker_plans import builtin, digest_of, http_plan, text, word_for
from tests.support.worker_runner import Bench
from tests.support.worker_upstream import ok, upstream

BODY = b'{"data":{"id":7},"token":"hidden"}'
ANSWER = ok(BODY, "201 Created", b"Content-Type: application/json\r\nLocation: /r/7\r\n")
RULES = ResponseRules(("Location",), {"id": "/data/id"})


def run(bench: Bench, answer: Any, planned: PlannedRequest, **changes: Any) -> tuple[Result, list[bytes]]:
    digest = bench.add(builtin("http"))
    call = {"method": planned.method, "url": planned.url, "headers": planned.headers, "body": planned.body}
    with upstream(answer) as up:
        plan = http_plan(
            address=up.address, provider_module_digest=digest, http_request=planned,
            provider_input=text({"request": {}, "call": call}), verifier_kind="http_status", **changes,
        )  # fmt: skip
        return bench.run(plan, word=word_for(plan, "c1")), up.requests


def test_the_header_for_it_has_the_id_of_the_intent_and_no_other_header_has_it(bench: Bench) -> None:
    headers = (("X-Note", INTENT_ID), ("Idempotency-Key", INTENT_ID))
    planned = PlannedRequest("POST", "http://upstream.test/x", headers, "{}", idempotency_header="Idempotency-Key")
    result, requests = run(bench, ANSWER, planned)
    assert result.outcome == "success"
    assert b"\r\nidempotency-key: c1\r\n" in requests[0]
    assert b"\r\nx-note: <intent id>\r\n" in requests[0]


def test_a_result_has_the_chosen_parts_of_the_answer_and_is_verified_by_its_status(bench: Bench) -> None:
    planned = PlannedRequest("POST", "http://upstream.test/x", (), "{}", RULES)
    result, _ = run(bench, ANSWER, planned)
    assert result.output is not None
    assert json.loads(result.output) == {"status": 201, "headers": {"Location": "/r/7"}, "body": {"id": 7}}
    assert result.verification.outcome == "verified"
    assert result.observations[0].body_sha256 == digest_of(BODY)


def test_the_response_schema_is_asked_about_the_chosen_parts(bench: Bench) -> None:
    schema = text({"properties": {"body": {"additionalProperties": False, "properties": {"id": {"type": "integer"}}}}})
    planned = PlannedRequest("POST", "http://upstream.test/x", (), "{}", RULES)
    strict: dict[str, Any] = {"response_schema": schema, "enforce_response_schema": True}
    assert run(bench, ANSWER, planned, **strict)[0].outcome == "success"
    whole = PlannedRequest("POST", "http://upstream.test/x", (), "{}")
    assert run(bench, ANSWER, whole, **strict)[0].outcome == "response_schema"


def test_members_picked_from_text_fail_the_call_with_a_reason_and_leave_its_observation(bench: Bench) -> None:
    planned = PlannedRequest("POST", "http://upstream.test/x", (), "{}", RULES)
    result, _ = run(bench, ok(b"<html>", "200 OK", b"Content-Type: text/html\r\n"), planned)
    assert (result.outcome, result.output) == ("bad_output", None)
    assert result.failure is not None
    assert "no JSON object or list" in result.failure.message
    assert result.observations[0].status == 200


def test_a_result_with_chosen_headers_is_bounded_as_any_other(bench: Bench) -> None:
    answer = ok(b"{}", "200 OK", b"Link: " + b"x" * 4000 + b"\r\n")
    planned = PlannedRequest("POST", "http://upstream.test/x", (), "{}", ResponseRules(("Link",)))
    result, _ = run(bench, answer, planned, max_response_bytes=1000)
    assert result.outcome == "bad_output"
    assert result.failure is not None
    assert "more than 1000 bytes" in result.failure.message
