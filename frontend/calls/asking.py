"""What the notary is asked about a call, and what it means for the caller when it does not answer."""

from frontend.calls.record import CallRecord
from frontend.errors import GateError
from frontend.notary.errors import NotaryRefused, NotaryUnavailable
from frontend.pool.channel import WorkerChannel
from frontend.telemetry.metrics import Metrics
from ipc import messages as m
from ipc.expected import kept_file
from ipc.identifiers import new
from ipc.plan import Plan, SealedPlan


def terms_of(sealed: SealedPlan) -> m.Terms:
    """The part of a plan that the notary keeps and signs."""
    plan = sealed.plan
    limits = plan.limits
    return m.Terms(
        plan_hash=sealed.digest, module_digest=plan.provider_module_digest, epoch=plan.epoch,
        verifier_kind=plan.verifier_kind, max_response_bytes=plan.max_response_bytes, fuel=limits.fuel,
        memory_mb=limits.memory_mb, timeout_seconds=limits.timeout_seconds, max_io_calls=limits.max_io_calls,
        file=kept_file(plan),
    )  # fmt: skip


def open_for(
    record: CallRecord, plan: Plan, terms: m.Terms, worker: WorkerChannel, has_budget: bool, approver: m.Approver | None
) -> m.Open:
    """The question that opens a call at this worker, under an intent that is new."""
    return m.Open(
        new("intent_"), record.event("allow"), terms, worker.worker_id, record.proof, has_budget, approver,
        wants_begun=bool(plan.secrets), calls_per_hour=record.calls_per_hour,
    )  # fmt: skip


def refusal(answer: m.Refusal, metrics: Metrics) -> GateError:
    """What a caller hears of a call that the notary has refused, with its event."""
    if answer.quota is None:
        return GateError(answer.code, cause=answer.cause, retry_after=answer.retry_after)
    metrics.quota_exhausted.add(answer.quota)
    return GateError(answer.code, cause=answer.cause, retry_after=answer.retry_after, reason=answer.quota)


def withdrawal(asked: m.Open, error: GateError) -> m.Withdraw:
    """The call is given up, for this reason."""
    return m.Withdraw(asked.intent_id, "error" if error.status >= 500 else "deny", error.code, error.cause)


def unavailable(asked: m.Open | m.Hold, error: NotaryUnavailable | NotaryRefused) -> GateError:
    """The error of a call that the notary did not open or hold."""
    if isinstance(error, NotaryUnavailable) and error.part == "budget":
        return GateError("budget_store_unavailable", cause=str(error))
    code = "evidence_persistence_failed" if asked.proof is None else "replay_cache_unavailable"
    return GateError(code, cause=str(error))
