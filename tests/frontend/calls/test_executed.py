"""The answer of a call that ran."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from contract.failures import CallFailure
from frontend.calls.executed import ExecutedCall
from ipc.operations.calls import Closed
from tests.support.plans import a_plan

CLOSED = Closed(
    receipt_id="rcpt_1", grant_id="grant_1", outcome="success", kind="success", reason=None,
    verification_outcome="verified", runtime={"duration_ms": 1, "exit_code": 0, "fuel_consumed": 2},
)  # fmt: skip


def executed(output: str | None = '{"n":1}', **changes: Any) -> ExecutedCall:
    return ExecutedCall(a_plan().trace_id, a_plan().action_id, msgspec.structs.replace(CLOSED, **changes), output)


def test_an_answer_has_the_output_the_evidence_and_what_it_took() -> None:
    assert executed().succeeded
    assert msgspec.to_builtins(executed().body()) == {
        "decision": "executed", "trace_id": "trc_1", "action_id": "a", "grant_id": "grant_1", "receipt_id": "rcpt_1",
        "output": {"n": 1}, "verification_outcome": "verified",
        "verification": {"outcome": "verified", "is_fully_successful": True},
        "runtime": {"duration_ms": 1, "exit_code": 0, "fuel_consumed": 2},
    }  # fmt: skip


def test_a_failure_and_whether_it_may_have_run_are_headers_beside_a_bare_body() -> None:
    failure = CallFailure("upstream_reset", "unknown")
    error = executed(None, outcome="host_io", kind="provider_failure", failure=failure).failure()
    assert error.body() == {"error": "action_execution_failed"}
    assert {"X-Failure": "upstream_reset", "X-May-Have-Run": "unknown"}.items() <= dict(error.headers()).items()


@pytest.mark.parametrize(
    ("exposes", "outcome", "header"),
    [
        (True, "provider_error", '"invalid: the \\u00e4ccount is closed"'),
        (False, "provider_error", None),
        (True, "host_io", None),
        (True, "fuel", None),
    ],
)
def test_the_providers_own_words_are_answered_in_a_header_where_its_manifest_says_so(
    exposes: bool, outcome: str, header: str | None
) -> None:
    reason = f"{outcome}: invalid: the \u00e4ccount is closed"
    failed = replace(executed(None, outcome=outcome, kind="provider_failure", reason=reason), exposes_error=exposes)
    error = failed.failure()
    assert error.body() == {"error": "action_execution_failed"}
    assert dict(error.headers()).get("X-Provider-Error") == header
    assert dict(error.headers())["X-Receipt-Id"] == "rcpt_1"


def test_a_tool_that_has_changed_is_told_as_a_module_that_has() -> None:
    error = executed(None, outcome="tool_changed", kind="provider_failure", reason="tool_changed: denied: it").failure()
    assert (error.status, error.body()) == (403, {"error": "action_digest_mismatch"})
    assert dict(error.headers())["X-Receipt-Id"] == "rcpt_1"


@pytest.mark.parametrize(
    ("outcome", "is_fully_successful"),
    [("verified", True), ("unverifiable_declared", True), ("verification_failed", False),
     ("provider_failed_before_verification", False)],
)  # fmt: skip
def test_a_verified_or_unverifiable_effect_is_a_full_success(outcome: str, is_fully_successful: bool) -> None:
    body = executed(verification_outcome=outcome).body()
    assert body.verification_outcome == outcome
    assert body.verification == {"outcome": outcome, "is_fully_successful": is_fully_successful}


def test_a_call_that_failed_is_answered_with_its_receipt() -> None:
    failed = executed(None, outcome="trap")
    assert not failed.succeeded
    error = failed.failure()
    assert (error.code, error.cause, error.receipt_id) == ("action_execution_failed", "trap", "rcpt_1")
    assert error.is_told, "its call has a line of its own"


def test_an_output_that_is_empty_text_is_a_success_without_members() -> None:
    assert executed("").succeeded
    assert executed("").body().output == {}
