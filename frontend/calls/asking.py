"""The question that opens a call, and the errors of a call that the notary refuses or does not answer."""

from frontend.calls.record import CallRecord
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.policy.by_values import CAP_RULE
from frontend.telemetry.metrics import Metrics
from ipc.effects import COMPUTE
from ipc.operations.calls import Approver, GrantTerms, Open, Refusal, RepeatedCall
from ipc.operations.holds import Hold
from ipc.plan import SealedPlan
from ipc.texts.identifiers import new
from ipc.verifiers import kept_file


def terms_of(sealed: SealedPlan) -> GrantTerms:
    """The part of a plan that the notary keeps and signs."""
    plan = sealed.plan
    limits = plan.limits
    return GrantTerms(
        plan_hash=sealed.digest, module_digest=plan.provider_module_digest, epoch=plan.epoch,
        verifier_kind=plan.verifier_kind, max_response_bytes=plan.max_response_bytes, fuel=limits.fuel,
        memory_mb=limits.memory_mb, timeout_seconds=limits.timeout_seconds, max_io_calls=limits.max_io_calls,
        only_computes=plan.profile == COMPUTE, file=kept_file(plan),
    )  # fmt: skip


def opening_of(
    record: CallRecord, sealed: SealedPlan, worker_id: str, has_budget: bool, approver: Approver | None
) -> Open:
    """The question that opens a call at this worker, under a new intent."""
    return Open(
        new("intent_"), record.event("allow"), terms_of(sealed), worker_id, record.proof, has_budget, approver,
        wants_begun=bool(sealed.plan.secrets), calls_per_hour=record.calls_per_hour,
        kept=record.kept, caps=record.caps, idempotency=record.key, standing=record.standing,
    )  # fmt: skip


def refusal(answer: Refusal, metrics: Metrics) -> GateError:
    """The error of a call that the notary has refused and whose event it has written."""
    if answer.deny_reason is not None:
        return GateError(answer.code, cause=answer.cause, deny_reason=answer.deny_reason, rule=CAP_RULE)
    if answer.quota is None:
        return GateError(answer.code, cause=answer.cause, retry_after=answer.retry_after)
    metrics.quota_exhausted.add(answer.quota)
    return GateError(answer.code, cause=answer.cause, retry_after=answer.retry_after, reason=answer.quota)


def repeats(record: CallRecord, answer: RepeatedCall) -> GateError:
    """The error that ends a call which was made before under its key; the record has what is answered instead."""
    record.is_decided, record.repeated = True, answer
    return GateError(answer.code or "call_in_progress", cause=f"the key is that of {answer.call_id}")


def unavailable(asked: Open | Hold, error: NotaryUnavailable | NotaryRefused) -> GateError:
    """The error of a call that the notary did not open or hold."""
    if isinstance(error, NotaryUnavailable) and error.part == "budget":
        return GateError("budget_store_unavailable", cause=str(error))
    code = "evidence_persistence_failed" if asked.proof is None else "replay_cache_unavailable"
    return GateError(code, cause=str(error))
