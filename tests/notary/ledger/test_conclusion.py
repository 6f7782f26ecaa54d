"""From worker outcomes to receipts: every row of the table, and malformed results."""

import re
from typing import Any

import msgspec
import pytest

from contract.failures import CallFailure
from ipc.limits import MAX_VALUES_JSON
from ipc.messages.calling import FAILED_OUTCOMES, ProviderFailure, Result, Verification
from ipc.operations.calls import Approver
from ipc.texts.canonical import MAX_SAFE_INTEGER, canonical_bytes, sha256_hex
from notary.ledger.conclusion import (
    CONCLUSIONS,
    CUT,
    MAX_EVIDENCE_CHARACTERS,
    NOT_VERIFIED,
    conclude,
    conclude_lost,
    receipt_of,
)
from notary.ledger.intents import OpenIntent
from notary.ledger.receipts import receipt_fields
from tests.notary.samples import DIGEST, SIGNER, call_event, make_terms

TERMS = make_terms(max_response_bytes=1000)
NOW = "2026-01-01T00:00:00.000Z"
APPROVER = Approver("apr_1", "ops", "thumbprint", "jti_1")
INTENT = OpenIntent("intent_1", "grant_1", NOW, call_event(), TERMS, has_budget=False, approver=None)


def result(outcome: str = "success", **changes: Any) -> Result:
    whole: dict[str, Any] = {
        "call_id": "c", "outcome": outcome, "output": '{"a":1}' if outcome == "success" else None,
        "failure": None if outcome == "success" else ProviderFailure("internal", "it broke"),
        "verification": Verification("verified", evidence=('{"status":200}',)), "observations": (),
        "fuel_consumed": 7, "duration_us": 1500, "io_calls": 1,
    }  # fmt: skip
    return Result(**(whole | changes))


@pytest.mark.parametrize("outcome", ["success", *FAILED_OUTCOMES])
def test_every_outcome_that_a_worker_may_report_has_a_row(outcome: str) -> None:
    conclusion = conclude(result(outcome), TERMS)
    assert (conclusion.kind, conclusion.failure_class, conclusion.failure_name) == CONCLUSIONS[outcome]
    assert (conclusion.kind == "success") == (outcome == "success")
    assert (conclusion.verification == NOT_VERIFIED) == (outcome != "success")


@pytest.mark.parametrize(
    ("outcome", "told", "name"),
    [
        ("host_io", "upstream_reset", "upstream_reset"),
        ("timeout", "upstream_timeout", "upstream_timeout"),
        ("provider_error", "upstream_status", "upstream_status"),
        ("fuel", "upstream_reset", "limit_fuel"),
        ("plan_refused", "upstream_reset", "worker_lost"),
    ],
)
def test_the_host_names_a_failure_only_where_the_outcome_leaves_it_open(outcome: str, told: Any, name: str) -> None:
    conclusion = conclude(result(outcome, failure_name=told, may_have_run="yes"), TERMS)
    assert conclusion.failure(TERMS) == CallFailure(name, "yes")  # type: ignore[arg-type]


def test_a_success_is_no_failure_and_a_call_without_effects_has_not_run() -> None:
    computes = make_terms(only_computes=True)
    assert conclude(result(), TERMS).failure(TERMS) is None
    assert conclude_lost("killed").failure(TERMS) == CallFailure("worker_lost", "unknown")
    assert conclude_lost("killed").failure(computes) == CallFailure("worker_lost", "no")
    assert conclude(result("trap", may_have_run="yes"), computes).failure(computes) == CallFailure(
        "provider_failed", "no"
    )


@pytest.mark.parametrize(
    ("outcomes", "kind", "failure_class"),
    [
        (("provider_error", "host_io", "trap", "bad_output", "response_schema"), "provider_failure", "provider_error"),
        (("fuel", "memory", "io_calls", "tool_changed"), "provider_failure", "policy_violation"),
        (("timeout",), "timeout", "timeout"),
        (("plan_refused", "module_missing"), "internal_error", "internal_error"),
    ],
)
def test_a_failure_is_the_providers_a_limits_times_or_ours(
    outcomes: tuple[str, ...], kind: str, failure_class: str
) -> None:
    for outcome in outcomes:
        receipt = receipt_of(conclude(result(outcome), TERMS), INTENT, NOW, SIGNER)
        assert (receipt.normalized_result["kind"], receipt.failure_class) == (kind, failure_class)


def test_a_call_that_the_end_of_the_gateway_cut_was_cancelled_by_us() -> None:
    receipt = receipt_of(CUT, INTENT, NOW, SIGNER)
    assert receipt.normalized_result == {"kind": "cancelled", "reason": "the gateway stopped before the call ended"}
    assert receipt.failure_class == "internal_error"
    assert receipt.provider_receipt == {"outcome": "cut"}
    for unfinished in (CUT, conclude_lost("died")):
        assert unfinished.runtime == {"duration_ms": 0, "exit_code": -1, "fuel_consumed": 0}


def test_a_success_has_its_output_and_its_hash_and_a_failure_has_neither() -> None:
    done = conclude(result(duration_us=2000), TERMS)
    assert (done.output, done.response_hash) == ({"a": 1}, sha256_hex(b'{"a":1}'))
    assert done.runtime == {"duration_ms": 2, "exit_code": 0, "fuel_consumed": 7}
    assert (done.reason, done.violation) == (None, None)
    receipt = receipt_of(done, INTENT, NOW, SIGNER)
    assert receipt.normalized_result == {"kind": "success", "summary": "text_digest 1.0.0 executed"}
    failed = conclude(result("trap", output='{"a":1}', fuel_consumed=None), TERMS)
    assert (failed.output, failed.response_hash, failed.evidence) == (None, None, [])
    assert failed.runtime == {"duration_ms": 1, "exit_code": 1, "fuel_consumed": 0}
    told = {"kind": "internal", "message": "it broke"}
    failure = receipt_of(failed, INTENT, NOW, SIGNER).provider_receipt
    assert (failure["outcome"], failure["io_calls"]) == ("trap", 1)
    assert failure["failure"].items() >= told.items()


def test_a_success_without_output_is_malformed() -> None:
    assert conclude(result(output=None), TERMS).detail == {"outcome": "worker_lost"}
    assert conclude(result(output=""), TERMS).detail == {"outcome": "worker_lost"}


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("fuel", "fuel limit of 1000000 reached"), ("memory", "memory limit of 64 MB reached"),
        ("timeout", "time limit of 30 s reached"), ("io_calls", "I/O call limit of 8 reached"), ("trap", "trap"),
    ],
)  # fmt: skip
def test_a_failure_says_which_limit_was_reached_and_what_the_provider_said(outcome: str, reason: str) -> None:
    assert conclude(result(outcome, failure=None), TERMS).reason == reason
    assert conclude(result(outcome), TERMS).reason == f"{reason}: internal: it broke"


def test_a_call_whose_time_ran_out_while_it_waited_for_its_upstream_is_a_timeout() -> None:
    waited = result("host_io", failure=ProviderFailure("timeout", "no answer"), duration_us=27_000_000)
    assert conclude(waited, TERMS).kind == "timeout"
    # The provider's own, shorter limit is its affair, and so is another failure of its upstream.
    for other in (
        msgspec.structs.replace(waited, duration_us=26_999_999),
        msgspec.structs.replace(waited, failure=ProviderFailure("refused", "no")),
        msgspec.structs.replace(waited, failure=None), msgspec.structs.replace(waited, outcome="provider_error"),
    ):  # fmt: skip
        assert conclude(other, TERMS).failure_class == "provider_error"


def test_a_broken_schema_that_only_warns_is_reported_with_the_success() -> None:
    assert conclude(result(violation="/a: must be\x1b a string"), TERMS).violation == "/a: must be a string"
    assert conclude(result("trap", violation="/a: must be a string"), TERMS).violation is None


def test_a_result_at_its_limits_is_one() -> None:
    text = '{"a":"' + "x" * (1000 - 8) + '"}'
    evidence = ('"' + "e" * (MAX_EVIDENCE_CHARACTERS - 2) + '"',)
    largest = result(
        output=text, verification=Verification("verified", evidence=evidence), duration_us=MAX_SAFE_INTEGER, io_calls=0
    )
    assert conclude(largest, TERMS).kind == "success"
    more = Verification("verified", evidence=(*evidence, "1"))
    assert conclude(msgspec.structs.replace(largest, verification=more), TERMS).kind == "internal_error"
    longer = msgspec.structs.replace(largest, output=text + " ")
    assert conclude(longer, TERMS).kind == "internal_error"


def test_a_success_that_failed_its_verification_says_so_in_the_receipt() -> None:
    failed = Verification("verification_failed", reason="status 404 is not expected")
    conclusion = conclude(result(verification=failed), TERMS)
    receipt = receipt_of(conclusion, INTENT, NOW, SIGNER)
    assert receipt.failure_class == "verification_failed"
    assert receipt.normalized_result["kind"] == "success"
    assert receipt.verification_outcome == {"status": "verification_failed", "reason": "status 404 is not expected"}


def test_a_verified_success_carries_its_evidence() -> None:
    receipt = receipt_of(conclude(result(), TERMS), INTENT, NOW, SIGNER)
    assert receipt.effect_evidence == [{"status": 200}]
    assert receipt.verification_outcome == {"status": "verified", "evidence": [{"status": 200}]}
    assert receipt.failure_class is None
    assert receipt.provider_receipt == {"a": 1}


def test_a_lost_worker_is_an_internal_error_with_its_reason() -> None:
    receipt = receipt_of(conclude_lost("channel closed"), INTENT, NOW, SIGNER)
    assert receipt.normalized_result == {"kind": "internal_error", "reason": "worker lost: channel closed"}
    assert receipt.verification_outcome == {"status": "provider_failed_before_verification"}


def test_the_receipt_says_whose_call_it_was_of_what_and_why_it_was_allowed() -> None:
    event = call_event(
        policy_rule="grants", policy_version="7", action_version="1.2.3", request_hash="sha256:1", trace_id="trc_9"
    )  # fmt: skip
    intent = msgspec.structs.replace(INTENT, event=event, approver=APPROVER)
    fields = receipt_fields(receipt_of(CUT, intent, NOW, SIGNER))
    assert fields.items() >= {
        "receipt_version": 2, "principal": event.principal, "action_id": event.action_id, "action_version": "1.2.3",
        "request_hash": "sha256:1", "plan_hash": TERMS.plan_hash, "trace_id": "trc_9", "epoch": TERMS.epoch,
        "policy_rule": "grants", "policy_version": "7", "grant_id": "grant_1", "provider_module_digest": DIGEST,
    }.items()  # fmt: skip
    assert re.fullmatch(r"rcpt_[0-9a-f]{8}-[0-9a-f-]{27}", fields["receipt_id"])
    assert fields["approval"] == {
        "approval_id": "apr_1", "approved_by": "ops", "operator_jkt": "thumbprint", "operator_proof_jti": "jti_1",
    }  # fmt: skip
    assert receipt_fields(receipt_of(CUT, INTENT, NOW, SIGNER))["approval"] is None


@pytest.mark.parametrize(
    "lie",
    [
        result(output="{"),
        result(output="[" * 100_000),
        result(verification=Verification("perfectly_fine")),
        result(verification=Verification("verified", evidence=("{",))),
        msgspec.structs.replace(result(), outcome="splendid"),
        result(output="[1]"),
        result(output='{"a":"' + "x" * 1000 + '"}'),
        result(verification=Verification("verified", evidence=('"x"' * 30_000,))),
        result(verification=Verification("skipped")),
        result(verification=Verification("unverifiable_declared")),
        result(verification=Verification("provider_failed_before_verification")),
        result(fuel_consumed=2**60),
        result(duration_us=2**62),
        result("fuel", io_calls=2**60),
        result(io_calls=-1),
        result("worker_lost"),
        result("cut"),
    ],
    ids=[
        "half output", "deep output", "unknown verification", "half evidence", "unknown outcome", "no object",
        "too much output", "too much evidence", "verification left out", "verification declared away",
        "verification of a failure", "endless fuel", "endless time", "endless calls",
        "less than no calls", "not the worker's to tell", "nor this",
    ],
)  # fmt: skip
def test_a_result_that_makes_no_sense_counts_as_a_lost_worker(lie: Result) -> None:
    conclusion = conclude(lie, TERMS)
    assert (conclusion.kind, conclusion.failure_class) == ("internal_error", "internal_error")
    assert conclusion.detail == {"outcome": "worker_lost"}, "nothing of what it told"


def test_a_success_of_more_values_than_a_sound_worker_reports_counts_as_a_lost_worker() -> None:
    terms = make_terms(max_response_bytes=1_000_000)
    many, most = ('{"a":[' + "0," * count + "0]}" for count in (MAX_VALUES_JSON, MAX_VALUES_JSON - 3))
    assert conclude(result(output=many), terms).detail == {"outcome": "worker_lost"}
    assert conclude(result(output=most), terms).kind == "success"


@pytest.mark.parametrize(("kind", "outcome"), [("none", "skipped"), ("unverifiable", "unverifiable_declared")])
def test_an_action_without_a_verifier_is_never_verified(kind: str, outcome: str) -> None:
    terms = make_terms(verifier_kind=kind)
    assert conclude(result(verification=Verification(outcome)), terms).verification.outcome == outcome
    assert conclude(result(), terms).detail["outcome"] == "worker_lost"


def test_a_providers_failure_message_is_cut_and_cleaned_for_evidence() -> None:
    failure = ProviderFailure("internal", "\x1b[31m\u202e" + "x" * 1_000_000, details="y" * 1_000_000)
    conclusion = conclude(result("provider_error", failure=failure), TERMS)
    assert conclusion.reason is not None
    assert conclusion.reason.isprintable()
    assert len(conclusion.reason) <= 500
    assert len(conclusion.detail["failure"]["message"]) == len(conclusion.detail["failure"]["details"]) == 2000
    assert len(str(receipt_of(conclusion, INTENT, NOW, SIGNER))) < 10_000


def test_every_conclusion_can_be_evidence() -> None:
    for conclusion in (conclude(result("fuel", fuel_consumed=2**53 - 1), TERMS), conclude_lost("died"), CUT):
        canonical_bytes(conclusion.runtime)
        receipt_of(conclusion, INTENT, NOW, SIGNER)
