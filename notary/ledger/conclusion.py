"""From what a worker reports to what evidence says: one table from worker outcome to receipt.

Pure. The receipt's fields are those of docs/contract.md, "Receipt"; which worker outcome becomes which
`normalized_result.kind`, `failure_class` and name of a failure stands in `CONCLUSIONS` and nowhere else.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from contract.failures import CallFailure, FailureName, MayHaveRun
from ipc.limits import MAX_VALUES_JSON
from ipc.messages.calling import ProviderFailure, Result, Verification
from ipc.operations.calls import GrantTerms
from ipc.texts.canonical import MAX_SAFE_INTEGER, sha256_hex
from ipc.texts.foreign_texts import clean_reason
from ipc.texts.identifiers import new
from ipc.texts.json_values import has_more_values
from ipc.verifiers import JUDGED, VERIFIERS
from notary.ledger.intents import OpenIntent
from notary.ledger.receipts import Attested, LedgerReceipt, ReceiptDecision, Signs, build_receipt

CONCLUSIONS: dict[str, tuple[str, str | None, FailureName | None]] = {
    # worker outcome: (normalized_result.kind, failure_class, the failure as the agent hears it)
    "success": ("success", None, None),
    "provider_error": ("provider_failure", "provider_error", "provider_failed"),
    "host_io": ("provider_failure", "provider_error", "provider_failed"),
    "io_calls": ("provider_failure", "policy_violation", "limit_io"),
    "fuel": ("provider_failure", "policy_violation", "limit_fuel"),
    "memory": ("provider_failure", "policy_violation", "limit_memory"),
    "timeout": ("timeout", "timeout", "limit_time"),
    "trap": ("provider_failure", "provider_error", "provider_failed"),
    "bad_output": ("provider_failure", "provider_error", "provider_failed"),
    "response_schema": ("provider_failure", "provider_error", "provider_failed"),
    "tool_changed": ("provider_failure", "policy_violation", "upstream_denied"),
    "plan_refused": ("internal_error", "internal_error", "worker_lost"),
    "module_missing": ("internal_error", "internal_error", "worker_lost"),
    "worker_lost": ("internal_error", "internal_error", "worker_lost"),
    "cut": ("cancelled", "internal_error", "worker_lost"),
}

OF_NO_WORKER = frozenset({"worker_lost", "cut"})
"""Outcomes that are found where there is no result."""
MAX_EVIDENCE_CHARACTERS = 65_536
MAX_DETAIL_CHARACTERS = 2_000
NOT_VERIFIED = Verification("provider_failed_before_verification")


class Conclusion(msgspec.Struct, frozen=True):
    """The outcome of one dispatch. `reason` is None on success; `output` is the provider's JSON value."""

    kind: str
    failure_class: str | None
    reason: str | None
    output: Any
    response_hash: str | None
    verification: Verification
    evidence: list[Any]
    """Evidence of the verifier, decoded."""
    runtime: dict[str, int]
    detail: dict[str, Any]
    """Details of a failure for `provider_receipt`."""
    violation: str | None = None
    """How a success breaks its response schema, where that only warns."""
    failure_name: FailureName | None = None
    may_have_run: MayHaveRun = "unknown"

    def failure(self, terms: GrantTerms) -> CallFailure | None:
        """The failure as the agent hears it. None after success."""
        if self.failure_name is None:
            return None
        return CallFailure(self.failure_name, "no" if terms.only_computes else self.may_have_run)


def conclude(result: Result, terms: GrantTerms) -> Conclusion:
    """The conclusion of a Result that a worker sent.

    SECURITY: a worker runs strangers' code and may have been taken over: whatever is not a result as the table
    and the plan's terms know it counts as a lost worker, never as a success, and is never too large or too strange to
    be evidence.
    """
    try:
        _check(result, terms)
        return _conclude(result, terms)
    except (KeyError, ValueError, RecursionError) as error:
        return conclude_lost(f"its result makes no sense ({type(error).__name__})")


def _check(result: Result, terms: GrantTerms) -> None:
    """Raises ValueError for what no sound worker reports of this terms."""
    numbers = (result.duration_us, result.fuel_consumed or 0, result.io_calls)
    if max(numbers) > MAX_SAFE_INTEGER or min(numbers) < 0:
        raise ValueError("a number that can't be counted to")
    if result.outcome in OF_NO_WORKER:
        raise ValueError("an outcome that no worker tells")
    if result.outcome != "success":
        return
    kind = VERIFIERS.get(terms.verifier_kind)
    if result.verification.outcome not in (JUDGED if kind is None else kind.outcomes):
        raise ValueError("a verification that this action can't have")
    if sum(map(len, result.verification.evidence)) > MAX_EVIDENCE_CHARACTERS:
        raise ValueError("too much evidence")
    if len(result.output or "") > terms.max_response_bytes:
        raise ValueError("too much output")
    if has_more_values((result.output or "").encode(), MAX_VALUES_JSON):
        raise ValueError("an output of too many values")


def _conclude(result: Result, terms: GrantTerms) -> Conclusion:
    outcome = _limit_or_outcome(result, terms)
    kind, failure_class, failure_name = CONCLUSIONS[outcome]
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
        reason=None if succeeded else _reason(outcome, result, terms),
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
        violation=clean_reason(result.violation) if succeeded and result.violation else None,
        failure_name=None if succeeded else _refined(failure_name, result),
        may_have_run=result.may_have_run,
    )


def _refined(name: FailureName | None, result: Result) -> FailureName | None:
    """The host's word where the outcome leaves it open. A limit and a lost worker are never anything else."""
    is_open = result.outcome in ("host_io", "timeout", "provider_error")
    return result.failure_name if is_open and result.failure_name is not None else name


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
    kind, failure_class, failure_name = CONCLUSIONS[outcome]
    return Conclusion(
        kind=kind, failure_class=failure_class, reason=reason, output=None, response_hash=None,
        verification=NOT_VERIFIED, evidence=[], runtime={"duration_ms": 0, "exit_code": -1, "fuel_consumed": 0},
        detail={"outcome": outcome}, failure_name=failure_name,
    )  # fmt: skip


CUT = _without_result("cut", "the gateway stopped before the call ended")
"""The conclusion of a dispatch that this process, leaving, could not wait for."""


def _limit_or_outcome(result: Result, terms: GrantTerms) -> str:
    """The worker's outcome; or timeout, when the call's time ran out while it waited for host I/O."""
    waited = result.outcome == "host_io" and result.failure is not None and result.failure.kind == "timeout"
    return "timeout" if waited and result.duration_us >= terms.timeout_seconds * 900_000 else result.outcome


def _reason(outcome: str, result: Result, terms: GrantTerms) -> str:
    words = {
        "fuel": f"fuel limit of {terms.fuel} reached",
        "memory": f"memory limit of {terms.memory_mb} MB reached",
        "timeout": f"time limit of {terms.timeout_seconds:g} s reached",
        "io_calls": f"I/O call limit of {terms.max_io_calls} reached",
    }.get(outcome, outcome)
    if result.failure is None:
        return words
    return clean_reason(f"{words}: {result.failure.kind}: {result.failure.message}")


def receipt_of(conclusion: Conclusion, intent: OpenIntent, finished_at: str, signer: Signs) -> LedgerReceipt:
    """Build and sign the receipt (docs/decisions/evidence.md, "Audit, receipts, intents")."""
    event = intent.event
    verification = conclusion.verification
    normalized: dict[str, Any] = {"kind": conclusion.kind}
    if conclusion.kind == "success":
        normalized["summary"] = f"{event.action_id} {event.action_version} executed"
    else:
        normalized["reason"] = conclusion.reason
    outcome: dict[str, Any] = {"status": verification.outcome}
    if verification.outcome == "verified":
        outcome["evidence"] = conclusion.evidence
    if verification.outcome == "verification_failed":
        outcome["reason"] = verification.reason
    return build_receipt(
        signer,
        _attested(intent),
        receipt_id=new("rcpt_"),
        grant_id=intent.grant_id,
        provider_module_digest=event.provider_module_digest or "",
        provider_receipt=conclusion.output if conclusion.kind == "success" else conclusion.detail,
        normalized_result=normalized,
        verification_outcome=outcome,
        effect_evidence=conclusion.evidence,
        started_at=intent.started_at,
        finished_at=finished_at,
        failure_class=conclusion.failure_class,
    )


def _attested(intent: OpenIntent) -> Attested:
    event, terms, approver = intent.event, intent.terms, intent.approver
    return Attested(
        principal=event.principal or "", action_id=event.action_id or "", action_version=event.action_version,
        request_hash=event.request_hash, plan_hash=terms.plan_hash, trace_id=event.trace_id or "", epoch=terms.epoch,
        policy_rule=event.policy_rule, policy_version=event.policy_version,
        approval=None if approver is None else ReceiptDecision(
            approver.approval_id, approver.approved_by, approver.operator_jkt, approver.operator_proof_jti,
            UNSET if approver.signature is None else approver.signature,
            UNSET if approver.quorum is None else approver.quorum, approver.approvals or UNSET,
        ),
        egress_networks=event.egress_networks or UNSET,
        standing_id=UNSET if intent.standing is None else intent.standing.standing_id,
        standing_signature=UNSET if intent.standing is None else intent.standing.signature,
    )  # fmt: skip
