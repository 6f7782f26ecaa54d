"""From what a worker reports to what evidence says: one table from worker outcome to receipt.

Pure. The receipt's fields are those of the interface specification ("Receipt"); which worker outcome becomes which
`normalized_result.kind` and `failure_class` stands in `CONCLUSIONS` and nowhere else.
"""

from typing import Any

import msgspec

from frontend.evidence.canonical import sha256_hex
from frontend.evidence.receipts import Receipt, build_receipt
from frontend.evidence.signing import ReceiptSigner
from frontend.identifiers import new
from ipc.messages import Result, Verification
from ipc.plan import Plan

CONCLUSIONS: dict[str, tuple[str, str | None]] = {
    # worker outcome: (normalized_result.kind, failure_class)
    "success": ("success", None),
    "provider_error": ("provider_failure", "provider_error"),
    "host_io": ("provider_failure", "provider_error"),
    "io_calls": ("provider_failure", "policy_violation"),
    "fuel": ("provider_failure", "policy_violation"),
    "memory": ("provider_failure", "policy_violation"),
    "timeout": ("timeout", "timeout"),
    "trap": ("provider_failure", "provider_error"),
    "bad_output": ("provider_failure", "provider_error"),
    "response_schema": ("provider_failure", "policy_violation"),
    "grant_refused": ("internal_error", "internal_error"),
    "module_missing": ("internal_error", "internal_error"),
    "worker_lost": ("internal_error", "internal_error"),
}

VERIFICATION_OUTCOMES = frozenset(
    {"verified", "verification_failed", "unverifiable_declared", "provider_failed_before_verification", "skipped"}
)
FULLY_SUCCESSFUL = frozenset({"verified", "unverifiable_declared"})
NOT_VERIFIED = Verification("provider_failed_before_verification")


class Conclusion(msgspec.Struct, frozen=True):
    """What one dispatch came to. `reason` is None on success; `output` is the provider's JSON value."""

    kind: str
    failure_class: str | None
    reason: str | None
    output: Any
    response_hash: str | None
    verification: Verification
    evidence: list[Any]
    """What the verifier gathered, decoded."""
    runtime: dict[str, int]
    detail: dict[str, Any]
    """What `provider_receipt` keeps of a failure."""


def conclude(result: Result, plan: Plan) -> Conclusion:
    """The conclusion of a Result that a worker sent.

    SECURITY: a worker runs strangers' code and may have been taken over: whatever is not a result as the table knows
    it counts as a lost worker, never as a success.
    """
    try:
        return _conclude(result, plan)
    except (KeyError, ValueError, RecursionError) as error:
        return conclude_lost(f"its result makes no sense ({type(error).__name__})")


def _conclude(result: Result, plan: Plan) -> Conclusion:
    kind, failure_class = CONCLUSIONS[result.outcome]
    succeeded = kind == "success"
    if result.verification.outcome not in VERIFICATION_OUTCOMES:
        raise ValueError(result.verification.outcome)
    if succeeded and result.verification.outcome == "verification_failed":
        failure_class = "verification_failed"
    output = msgspec.json.decode(result.output) if succeeded and result.output is not None else None
    return Conclusion(
        kind=kind,
        failure_class=failure_class,
        reason=None if succeeded else _reason(result, plan),
        output=output,
        response_hash=sha256_hex(result.output.encode()) if succeeded and result.output is not None else None,
        verification=result.verification if succeeded else NOT_VERIFIED,
        evidence=[msgspec.json.decode(text) for text in result.verification.evidence] if succeeded else [],
        runtime={
            "duration_ms": result.duration_us // 1000,
            "exit_code": 0 if succeeded else 1,
            "fuel_consumed": result.fuel_consumed or 0,
        },
        detail={"outcome": result.outcome, "io_calls": result.io_calls, "failure": msgspec.to_builtins(result.failure)},
    )


def conclude_lost(reason: str) -> Conclusion:
    """The conclusion of a dispatch whose worker died, broke the protocol or outlived its deadline."""
    kind, failure_class = CONCLUSIONS["worker_lost"]
    return Conclusion(
        kind=kind, failure_class=failure_class, reason=f"worker lost: {reason}", output=None, response_hash=None,
        verification=NOT_VERIFIED, evidence=[], runtime={"duration_ms": 0, "exit_code": -1, "fuel_consumed": 0},
        detail={"outcome": "worker_lost"},
    )  # fmt: skip


def _reason(result: Result, plan: Plan) -> str:
    limits = plan.limits
    words = {
        "fuel": f"fuel limit of {limits.fuel} reached",
        "memory": f"memory limit of {limits.memory_mb} MB reached",
        "timeout": f"time limit of {limits.timeout_seconds:g} s reached",
        "io_calls": f"I/O call limit of {limits.max_io_calls} reached",
    }.get(result.outcome, result.outcome)
    if result.failure is None:
        return words
    return f"{words}: {result.failure.kind}: {result.failure.message}"


def receipt_of(
    conclusion: Conclusion, plan: Plan, grant_id: str, started_at: str, finished_at: str, signer: ReceiptSigner
) -> Receipt:
    """Build and sign the receipt (docs/decisions.md, "Audit, receipts, intents")."""
    verification = conclusion.verification
    normalized: dict[str, Any] = {"kind": conclusion.kind}
    if conclusion.kind == "success":
        normalized["summary"] = f"{plan.action_id} {plan.action_version} executed"
    else:
        normalized["reason"] = conclusion.reason
    outcome: dict[str, Any] = {"status": verification.outcome}
    if verification.outcome == "verified":
        outcome["evidence"] = conclusion.evidence
    if verification.outcome == "verification_failed":
        outcome["reason"] = verification.reason
    return build_receipt(
        signer,
        receipt_id=new("rcpt_"),
        grant_id=grant_id,
        provider_module_digest=plan.provider_module_digest,
        provider_receipt=conclusion.output if conclusion.kind == "success" else conclusion.detail,
        normalized_result=normalized,
        verification_outcome=outcome,
        effect_evidence=conclusion.evidence,
        started_at=started_at,
        finished_at=finished_at,
        failure_class=conclusion.failure_class,
    )
