"""From worker outcomes to receipts: every row of the table, and results that are none."""

from typing import Any

import msgspec
import pytest

from ipc.canonical import canonical_bytes
from ipc.messages import FAILED_OUTCOMES, Approver, ProviderFailure, Result, Verification
from notary.ledger.conclusion import CONCLUSIONS, CUT, NOT_VERIFIED, conclude, conclude_lost, receipt_of
from notary.ledger.intents import OpenIntent
from notary.ledger.receipts import receipt_fields
from tests.notary.samples import SIGNER, call_event, make_terms

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
    assert (conclusion.kind, conclusion.failure_class) == CONCLUSIONS[outcome]
    assert (conclusion.kind == "success") == (outcome == "success")
    assert (conclusion.verification == NOT_VERIFIED) == (outcome != "success")


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
        "policy_rule": "grants", "policy_version": "7", "grant_id": "grant_1",
    }.items()  # fmt: skip
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
    ],
    ids=[
        "half output", "deep output", "unknown verification", "half evidence", "unknown outcome", "no object",
        "too much output", "too much evidence", "verification left out", "verification declared away",
        "verification of a failure", "endless fuel", "endless time", "endless calls",
    ],
)  # fmt: skip
def test_a_result_that_makes_no_sense_counts_as_a_lost_worker(lie: Result) -> None:
    conclusion = conclude(lie, TERMS)
    assert (conclusion.kind, conclusion.failure_class) == CONCLUSIONS["worker_lost"]


@pytest.mark.parametrize(("kind", "outcome"), [("none", "skipped"), ("unverifiable", "unverifiable_declared")])
def test_an_action_without_a_verifier_is_never_verified(kind: str, outcome: str) -> None:
    terms = make_terms(verifier_kind=kind)
    assert conclude(result(verification=Verification(outcome)), terms).verification.outcome == outcome
    assert conclude(result(), terms).detail["outcome"] == "worker_lost"


def test_what_a_provider_says_of_its_failure_is_cut_and_cleaned_before_it_is_evidence() -> None:
    failure = ProviderFailure("internal", "\x1b[31m\u202e" + "x" * 1_000_000, details="y" * 1_000_000)
    conclusion = conclude(result("provider_error", failure=failure), TERMS)
    assert conclusion.reason is not None
    assert conclusion.reason.isprintable()
    assert len(conclusion.reason) <= 500
    assert len(str(conclusion.detail)) < 5000
    assert len(str(receipt_of(conclusion, INTENT, NOW, SIGNER))) < 10_000


def test_every_conclusion_can_be_evidence() -> None:
    for conclusion in (conclude(result("fuel", fuel_consumed=2**53 - 1), TERMS), conclude_lost("died"), CUT):
        canonical_bytes(conclusion.runtime)
        receipt_of(conclusion, INTENT, NOW, SIGNER)
