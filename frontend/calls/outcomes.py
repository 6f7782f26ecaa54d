"""From what a worker reports to what evidence says: one table from worker outcome to receipt.

Pure. The receipt's fields are those of the interface specification ("Receipt"); which worker outcome becomes which
`normalized_result.kind` and `failure_class` stands in `CONCLUSIONS` and nowhere else.
"""

from typing import Any

import msgspec

from frontend.evidence.receipts import Receipt, build_receipt
from frontend.evidence.signing import ReceiptSigner
from frontend.identifiers import new
from frontend.policy.question import clean_reason
from ipc.canonical import MAX_SAFE_INTEGER, sha256_hex
from ipc.messages import ProviderFailure, Result, Verification
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
    "cut": ("cancelled", "internal_error"),
}

VERIFICATIONS = {"none": frozenset({"skipped"}), "unverifiable": frozenset({"unverifiable_declared"})}
"""Verifier kind -> what may come of a success."""
JUDGED = frozenset({"verified", "verification_failed"})
"""What may come of a success under any other kind."""
MAX_EVIDENCE_CHARACTERS = 65_536
MAX_DETAIL_CHARACTERS = 2_000
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

    SECURITY: a worker runs strangers' code and may have been taken over: whatever is not a result as the table and the
    plan know it counts as a lost worker, never as a success, and is never too large or too strange to be evidence.
    """
    try:
        _check(result, plan)
        return _conclude(result, plan)
    except (KeyError, ValueError, RecursionError) as error:
        return conclude_lost(f"its result makes no sense ({type(error).__name__})")


def _check(result: Result, plan: Plan) -> None:
    """Raises ValueError for what no sound worker reports of this plan."""
    if max(result.duration_us, result.fuel_consumed or 0, result.io_calls) > MAX_SAFE_INTEGER:
        raise ValueError("a number too large")
    if result.outcome != "success":
        return
    if result.verification.outcome not in VERIFICATIONS.get(plan.verifier_kind, JUDGED):
        raise ValueError("a verification that this action can't have")
    if sum(map(len, result.verification.evidence)) > MAX_EVIDENCE_CHARACTERS:
        raise ValueError("too much evidence")
    if len(result.output or "") > plan.max_response_bytes:
        raise ValueError("too much output")


def _conclude(result: Result, plan: Plan) -> Conclusion:
    outcome = _limit_or_outcome(result, plan)
    kind, failure_class = CONCLUSIONS[outcome]
    succeeded = kind == "success"
    verification = result.verification
    if succeeded and verification.outcome == "verification_failed":
        failure_class = "verification_failed"
        verification = Verification(verification.outcome, clean_reason(verification.reason or ""))
    output = msgspec.json.decode(result.output) if succeeded and result.output is not None else None
    if succeeded and not isinstance(output, dict):
        raise ValueError("an output that is no object")
    return Conclusion(
        kind=kind,
        failure_class=failure_class,
        reason=None if succeeded else _reason(outcome, result, plan),
        output=output,
        response_hash=sha256_hex(result.output.encode()) if succeeded and result.output is not None else None,
        verification=verification if succeeded else NOT_VERIFIED,
        evidence=[msgspec.json.decode(text) for text in result.verification.evidence] if succeeded else [],
        runtime={
            "duration_ms": result.duration_us // 1000,
            "exit_code": 0 if succeeded else 1,
            "fuel_consumed": result.fuel_consumed or 0,
        },
        detail={"outcome": result.outcome, "io_calls": result.io_calls, "failure": _bounded(result.failure)},
    )


def _bounded(failure: ProviderFailure | None) -> dict[str, Any] | None:
    """A failure for the receipt: a provider's texts, cut."""
    fields: dict[str, Any] | None = msgspec.to_builtins(failure)
    for name, value in (fields or {}).items():
        if fields and isinstance(value, str):
            fields[name] = value[:MAX_DETAIL_CHARACTERS]
    return fields


def conclude_lost(reason: str) -> Conclusion:
    """The conclusion of a dispatch whose worker died, broke the protocol or outlived its deadline."""
    return _without_result("worker_lost", f"worker lost: {reason}")


def _without_result(outcome: str, reason: str) -> Conclusion:
    kind, failure_class = CONCLUSIONS[outcome]
    return Conclusion(
        kind=kind, failure_class=failure_class, reason=reason, output=None, response_hash=None,
        verification=NOT_VERIFIED, evidence=[], runtime={"duration_ms": 0, "exit_code": -1, "fuel_consumed": 0},
        detail={"outcome": outcome},
    )  # fmt: skip


CUT = _without_result("cut", "the gateway stopped before the call ended")
"""The conclusion of a dispatch that this process, leaving, could not wait for."""


def _limit_or_outcome(result: Result, plan: Plan) -> str:
    """The worker's outcome; or timeout, when the call's time ran out while it waited for somebody else."""
    waited = result.outcome == "host_io" and result.failure is not None and result.failure.kind == "timeout"
    return "timeout" if waited and result.duration_us >= plan.limits.timeout_seconds * 900_000 else result.outcome


def _reason(outcome: str, result: Result, plan: Plan) -> str:
    limits = plan.limits
    words = {
        "fuel": f"fuel limit of {limits.fuel} reached",
        "memory": f"memory limit of {limits.memory_mb} MB reached",
        "timeout": f"time limit of {limits.timeout_seconds:g} s reached",
        "io_calls": f"I/O call limit of {limits.max_io_calls} reached",
    }.get(outcome, outcome)
    if result.failure is None:
        return words
    return clean_reason(f"{words}: {result.failure.kind}: {result.failure.message}")


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
