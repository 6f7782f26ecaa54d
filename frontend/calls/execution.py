"""The only path that runs a provider, for allowed and for approved calls alike.

secrets -> worker -> grant -> intent -> dispatch -> receipt and event -> answer. Guarantees: the intent and the use of
the grant are durable before the worker hears of the plan, the receipt and the event before anybody hears the result;
a worker that dies leaves a receipt, and so does a call that the end of this process cuts. Never decides whether a plan
may run.
"""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import trio

from frontend.auth.epochs import Epochs
from frontend.calls.outcomes import CUT, FULLY_SUCCESSFUL, Conclusion, conclude, conclude_lost, receipt_of
from frontend.calls.record import CallRecord
from frontend.clock import Clock, ClockError
from frontend.contract.execution import ExecutionResult, Runtime, VerificationOutcome, VerificationSummary
from frontend.errors import GateError
from frontend.evidence.grants import ApprovalBinding, GrantSigner
from frontend.evidence.ledger import EvidenceRefused, Intent, Ledger, LedgerUnavailable
from frontend.evidence.receipts import Receipt
from frontend.evidence.signing import ReceiptSigner
from frontend.identifiers import new
from frontend.pool.channel import WorkerChannel, WorkerLost
from frontend.pool.pool import NoWorker, Pools
from frontend.secrets.files import SecretMissing, Secrets, SecretsUnavailable
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import Metrics
from ipc.framing import FrameError
from ipc.messages import Call
from ipc.plan import Plan, plan_hash

GRANT_MARGIN_SECONDS = 30.0
"""A grant outlives its call's deadline by this much: clocks are read twice, by two processes."""
CLEAN_UP_SECONDS = 12.0
"""What a cancelled call may take to leave its evidence: beyond the deadline of one write."""


class Dispatched(NamedTuple):
    """What is known of a call from its intent on."""

    plan: Plan
    approval: ApprovalBinding | None
    grant_id: str
    intent_id: str
    started_at: str


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that ran, whatever came of it, with its evidence durable."""

    plan: Plan
    receipt: Receipt
    conclusion: Conclusion
    grant_id: str

    @property
    def succeeded(self) -> bool:
        """True when the provider succeeded (verification may still have failed)."""
        return self.conclusion.kind == "success"

    def body(self) -> ExecutionResult:
        """What the caller hears."""
        outcome = cast(VerificationOutcome, self.conclusion.verification.outcome)
        return ExecutionResult(
            trace_id=self.plan.trace_id,
            action_id=self.plan.action_id,
            grant_id=self.grant_id,
            receipt_id=self.receipt.receipt_id,
            output=self.conclusion.output,
            verification_outcome=outcome,
            verification=VerificationSummary(outcome=outcome, is_fully_successful=outcome in FULLY_SUCCESSFUL),
            runtime=Runtime(**self.conclusion.runtime),
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """Runs plans. One instance serves every call of this front."""

    clock: Clock
    ledger: Ledger
    secrets: Secrets
    grants: GrantSigner
    signer: ReceiptSigner
    pools: Pools
    worker_wait_seconds: float
    epochs: Epochs
    metrics: Metrics

    async def run(self, record: CallRecord, plan: Plan, approval: ApprovalBinding | None = None) -> Executed:
        """Execute `plan` once.

        Raises GateError. `record.is_spent` says whether a worker was told: if not, whoever debited gives the call back;
        if so, it can only be evidence_persistence_failed: then the intent stays unresolved and shows.
        """
        values = self._secret_values(plan)
        dispatched, conclusion, began = None, CUT, time.perf_counter()
        owners = (f"principal {plan.principal}", f"session {plan.session_id}")
        try:
            async with self.pools.lease(plan.profile, plan.isolation, self.worker_wait_seconds, owners) as worker:
                self.metrics.worker_wait.observe(time.perf_counter() - began, plan.profile)
                # SECURITY: the last look before the worker is told; a call may have waited long since its check-in.
                async with self.epochs.granting(plan.epoch, "plan_integrity" if approval else "invalid_lease"):
                    dispatched, grant = await self._grant(plan, approval)
                record.is_spent = True
                conclusion = await self._dispatch(
                    worker, Call(plan.trace_id, plan, grant, values, plan.limits.timeout_seconds)
                )
            receipt = await self._conclude(record, dispatched, conclusion)
        except NoWorker as error:
            self.metrics.worker_wait.observe(time.perf_counter() - began, plan.profile)
            raise GateError("overloaded", cause=str(error)) from None
        except trio.Cancelled:
            if dispatched is not None:
                await self._conclude_all_the_same(record, dispatched, conclusion)
            raise
        return Executed(plan, receipt, conclusion, dispatched.grant_id)

    def _secret_values(self, plan: Plan) -> dict[str, str]:
        if not plan.secrets:
            return {}
        try:
            return self.secrets.for_plan(plan.secrets)
        except SecretMissing as error:
            raise GateError("policy_denied", cause=str(error), deny_reason=str(error)) from None
        except SecretsUnavailable as error:
            raise GateError("internal_error", cause=str(error)) from None

    async def _dispatch(self, worker: WorkerChannel, call: Call) -> Conclusion:
        """Send one call and conclude from what comes back; a worker that is lost is a conclusion too."""
        began, conclusion = time.perf_counter(), CUT
        try:
            conclusion = conclude(await worker.call(call), call.plan)
        except (WorkerLost, FrameError) as error:
            conclusion = conclude_lost(str(error))
        finally:
            self.metrics.executed(call.plan.action_id, conclusion.detail["outcome"], time.perf_counter() - began)
        return conclusion

    async def _grant(self, plan: Plan, approval: ApprovalBinding | None) -> tuple[Dispatched, str]:
        """Sign, then make intent and consumption of the grant durable: only then may the grant be sent."""
        grant_id, intent_id = new("grant_"), new("intent_")
        now = self.clock.now()
        ttl = plan.limits.timeout_seconds + GRANT_MARGIN_SECONDS
        grant = self.grants.sign(plan, grant_id, now=now, ttl=ttl, approval=approval)
        intent = Intent(
            intent_id=intent_id, trace_id=plan.trace_id, action_id=plan.action_id, principal=plan.principal,
            dispatched_at=self.clock.iso(now), grant_id=grant_id, provider_module=plan.provider_module_digest,
            plan_hash=plan_hash(plan), approval_id=approval.approval_id if approval else None,
        )  # fmt: skip
        try:
            await self.ledger.begin(intent)
        except (LedgerUnavailable, EvidenceRefused) as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None
        return Dispatched(plan, approval, grant_id, intent_id, intent.dispatched_at), grant

    async def _conclude(self, record: CallRecord, dispatched: Dispatched, conclusion: Conclusion) -> Receipt:
        """Receipt and event, durable. Raises GateError evidence_persistence_failed for whatever prevents them."""
        try:
            receipt = receipt_of(
                conclusion, dispatched.plan, dispatched.grant_id, dispatched.started_at, self.clock.iso(), self.signer
            )
            await self._record(record, receipt, conclusion, dispatched)
        except (LedgerUnavailable, ClockError) as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None
        except Exception as error:  # what ran has run: no fault of ours makes another answer of it
            log.exception("evidence could not be made")
            raise GateError("evidence_persistence_failed", cause=type(error).__name__) from None
        return receipt

    async def _conclude_all_the_same(self, record: CallRecord, dispatched: Dispatched, conclusion: Conclusion) -> None:
        """The process leaves and nobody will hear the answer; what was dispatched leaves its evidence. Never raises."""
        try:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEAN_UP_SECONDS):
                await self._conclude(record, dispatched, conclusion)
        except GateError as error:
            log.error("a call that was cut left no receipt", trace_id=record.trace_id, cause=error.cause)

    async def _record(
        self, record: CallRecord, receipt: Receipt, conclusion: Conclusion, dispatched: Dispatched
    ) -> None:
        approval = dispatched.approval
        succeeded = conclusion.kind == "success"
        found: dict[str, Any] = {
            "runtime": conclusion.runtime,
            "grant_id": receipt.grant_id,
            "receipt_id": receipt.receipt_id,
            "intent_id": dispatched.intent_id,
            "verification_outcome": conclusion.verification.outcome,
            "response_hash": conclusion.response_hash,
            "error_code": None if succeeded else "action_execution_failed",
            "reason": conclusion.reason,
        }
        if approval is not None:
            found |= {
                "approval_id": approval.approval_id,
                "approved_by": approval.approved_by,
                "operator_sender_binding": approval.operator_jkt,
                "operator_proof_jti": approval.operator_proof_jti,
            }
        event = record.event(self.clock, "allow" if succeeded else "error", **found)
        await self.ledger.record(receipt=receipt, event=event, intent_id=dispatched.intent_id)
        record.is_decided = True
