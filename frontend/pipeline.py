"""The way of a call, from headers to an answer with evidence: a straight line of steps.

admit -> authenticate -> resolve -> validate -> decide -> debit -> (hold | execute). Each step returns or raises
GateError; every outcome past admission leaves exactly one audit event for the decision before it is answered.
Never runs a provider (frontend/execution.py) and never judges by itself (the policy engine decides).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from frontend.actions.planning import Draft, build_plan, draft
from frontend.actions.registry import Action, Registry
from frontend.actions.schema import parse_body
from frontend.admission import Admission
from frontend.approvals.hold import Holds
from frontend.authentication import Authentication, Caller
from frontend.budgets import Budgets
from frontend.case import Case
from frontend.clock import Clock, ClockError
from frontend.errors import GateError
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.execution import Executed, Execution, NotDispatched
from frontend.http.requests import Request
from frontend.policy.engine import PolicyEngine
from frontend.policy.question import Decision, Question
from frontend.stores.interface import ApprovalRecord
from frontend.telemetry.marks import Marks
from ipc.settings import Settings

log = structlog.get_logger()

TRUST_CODES = {"mismatch": "action_digest_mismatch", "not_registered": "action_not_registered"}
MAX_BODY_BYTES = 1_048_576
"""Interface specification, "Limits"."""


@dataclass(frozen=True, slots=True)
class Held:
    """A call that waits for a person (202)."""

    record: ApprovalRecord
    trace_id: str

    def body(self) -> dict[str, Any]:
        """Interface specification, "Pending approval response"."""
        return {
            "decision": "pending_approval",
            "approval_id": self.record.approval_id,
            "request_hash": self.record.request_hash,
            "trace_id": self.trace_id,
        }


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Takes one call after another; holds no state of its own."""

    settings: Settings
    clock: Clock
    marks: Marks
    admission: Admission
    authentication: Authentication
    registry: Callable[[], Registry]
    policy: PolicyEngine
    budgets: Budgets
    holds: Holds
    execution: Execution
    ledger: Ledger

    async def call(self, request: Request, action_id: str) -> Executed | Held:
        """Enforce one call. Raises GateError for every other outcome, with its evidence durable."""
        with self.admission.enter():
            case = Case(action_id, self.marks)
            structlog.contextvars.bind_contextvars(trace_id=case.trace_id)
            try:
                return await self._enforce(case, request)
            except GateError as error:
                await self._refused(case, error)
                raise

    async def _enforce(self, case: Case, request: Request) -> Executed | Held:
        caller = await self.authentication.agent(request)
        case.lease, case.identity_method = caller.lease, caller.lease.identity_method
        action = self._resolve(case)
        body = parse_body(await request.read_body(min(MAX_BODY_BYTES, action.max_request_bytes)))
        case.calls_before = await self.budgets.snapshot(caller.lease)
        drafted = draft(action, body, caller.lease, case.calls_before, caller.epoch, settings=self.settings)
        case.request_hash = drafted.request_hash
        decision = await self._decide(case, drafted)
        if decision.requires_approval and (record := await self.holds.repeated(case, drafted)):
            return Held(record, case.trace_id)
        case.calls_after = await self.budgets.debit(caller.lease)
        try:
            return await self._dispatch(case, caller, drafted, decision)
        except NotDispatched:
            await self._give_back(case, caller)
            raise

    def _resolve(self, case: Case) -> Action:
        action = self.registry().get(case.action_id)
        if action is None:
            raise GateError("action_not_found")
        case.action = action
        if action.trust_verdict != "digest_ok":
            raise GateError(TRUST_CODES[action.trust_verdict])
        return action

    async def _decide(self, case: Case, drafted: Draft) -> Decision:
        decision = case.decision = await self.policy.decide(_question(drafted))
        if not decision.allow:
            raise GateError("policy_denied", deny_reason=decision.deny_reason or "denied by policy")
        if not set(drafted.sinks) <= set(decision.allowed_sinks):
            raise GateError("policy_denied", deny_reason="policy does not allow every sink of this action")
        return decision

    async def _dispatch(self, case: Case, caller: Caller, drafted: Draft, decision: Decision) -> Executed | Held:
        plan = case.plan = build_plan(
            drafted,
            case.trace_id,
            decision.policy_version,
            decision.rule,
            self.clock.iso(),
            is_held=decision.requires_approval,
        )
        if not decision.requires_approval:
            return await self.execution.run(case, plan)
        pending = await self.holds.hold(case, plan, caller.lease.has_budget)
        if pending.is_repeat:
            await self._give_back(case, caller)
        return Held(pending.record, case.trace_id)

    async def _give_back(self, case: Case, caller: Caller) -> None:
        if caller.lease.has_budget and await self.budgets.refund(caller.lease.session_id):
            case.calls_after = case.calls_before

    async def _refused(self, case: Case, error: GateError) -> None:
        """The one audit event of a refused call. An outcome without evidence becomes evidence_persistence_failed."""
        log.info("refused", code=error.code, action_id=case.action_id, cause=error.cause)
        found = {
            "error_code": error.code,
            "deny_reason": error.extra.get("deny_reason"),
            "reason": error.cause or error.extra.get("reason"),
        }
        try:
            await self.ledger.append(case.event(self.clock, "error" if error.status >= 500 else "deny", **found))
        except (LedgerUnavailable, ClockError) as problem:
            log.error("a refusal left no event", code=error.code, action_id=case.action_id, cause=str(problem))
            if error.status < 500:
                raise GateError("evidence_persistence_failed", cause=str(problem)) from None


def _question(drafted: Draft) -> Question:
    """What policy is asked of a draft (docs/policy.md, input document)."""
    action = drafted.action
    return Question(
        principal=drafted.principal,
        owner=drafted.owner,
        action_id=action.action_id,
        action_version=action.version,
        action_risk_level=action.risk_level,
        action_trust_verdict=action.trust_verdict,
        scopes=drafted.scopes,
        required_scopes=action.required_scopes,
        requested_sinks=drafted.sinks,
        requested_secrets=action.secret_names,
        egress_profile=action.egress_profile,
        targets=drafted.targets,
        unresolved_domains=drafted.unresolved_domains,
        unresolved_paths=drafted.unresolved_paths,
        fs_path=drafted.fs_path,
        calls_remaining=drafted.calls_remaining,
        request_hash=drafted.request_hash,
    )
