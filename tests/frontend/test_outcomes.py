"""From worker outcomes to receipts: every row of the table, and results that are none."""

from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from frontend.evidence.signing import ReceiptSigner, public_jwk
from frontend.outcomes import CONCLUSIONS, NOT_VERIFIED, conclude, conclude_lost, receipt_of
from ipc.messages import FAILED_OUTCOMES, ProviderFailure, Result, Verification
from tests.support.plans import a_plan

NOW = "2026-01-01T00:00:00.000Z"


def result(outcome: str = "success", **changes: Any) -> Result:
    whole: dict[str, Any] = {
        "call_id": "c", "outcome": outcome, "output": '{"a":1}' if outcome == "success" else None,
        "failure": None if outcome == "success" else ProviderFailure("internal", "it broke"),
        "verification": Verification("verified", evidence=('{"status":200}',)), "observations": (),
        "fuel_consumed": 7, "duration_us": 1500, "io_calls": 1,
    }  # fmt: skip
    return Result(**(whole | changes))


def signer() -> ReceiptSigner:
    key = Ed25519PrivateKey.generate()
    return ReceiptSigner(key, {"keys": [public_jwk(key)]})


@pytest.mark.parametrize("outcome", ["success", *FAILED_OUTCOMES])
def test_every_outcome_that_a_worker_may_report_has_a_row(outcome: str) -> None:
    conclusion = conclude(result(outcome), a_plan())
    assert (conclusion.kind, conclusion.failure_class) == CONCLUSIONS[outcome]
    assert (conclusion.kind == "success") == (outcome == "success")
    assert (conclusion.verification == NOT_VERIFIED) == (outcome != "success")


def test_a_success_that_failed_its_verification_says_so_in_the_receipt() -> None:
    failed = Verification("verification_failed", reason="status 404 is not expected")
    conclusion = conclude(result(verification=failed), a_plan())
    receipt = receipt_of(conclusion, a_plan(), "grant_1", NOW, NOW, signer())
    assert receipt.failure_class == "verification_failed"
    assert receipt.normalized_result["kind"] == "success"
    assert receipt.verification_outcome == {"status": "verification_failed", "reason": "status 404 is not expected"}


def test_a_verified_success_carries_its_evidence() -> None:
    receipt = receipt_of(conclude(result(), a_plan()), a_plan(), "grant_1", NOW, NOW, signer())
    assert receipt.effect_evidence == [{"status": 200}]
    assert receipt.verification_outcome == {"status": "verified", "evidence": [{"status": 200}]}
    assert receipt.failure_class is None
    assert receipt.provider_receipt == {"a": 1}


def test_a_lost_worker_is_an_internal_error_with_its_reason() -> None:
    receipt = receipt_of(conclude_lost("channel closed"), a_plan(), "grant_1", NOW, NOW, signer())
    assert receipt.normalized_result == {"kind": "internal_error", "reason": "worker lost: channel closed"}
    assert receipt.verification_outcome == {"status": "provider_failed_before_verification"}


@pytest.mark.parametrize(
    "lie",
    [
        result(output="{"),
        result(output="[" * 100_000),
        result(verification=Verification("perfectly_fine")),
        result(verification=Verification("verified", evidence=("{",))),
        msgspec.structs.replace(result(), outcome="splendid"),
    ],
    ids=["half output", "deep output", "unknown verification", "half evidence", "unknown outcome"],
)
def test_a_result_that_makes_no_sense_counts_as_a_lost_worker(lie: Result) -> None:
    conclusion = conclude(lie, a_plan())
    assert (conclusion.kind, conclusion.failure_class) == CONCLUSIONS["worker_lost"]
