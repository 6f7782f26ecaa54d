"""One call as far as it is known: what each step of the pipeline has found out, and the audit event it makes.

Filled from top to bottom, so that an outcome at any step leaves an event with all that was known there. Knows whether
its decision is in evidence and whether its debit is spent, so that neither happens twice, whatever went wrong in
between. Never holds the request's values: those live in the plan.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from frontend.actions.registry import Action
from frontend.auth.lease import Lease
from frontend.calls.call_trace import CallTrace
from frontend.calls.kept import kept_of_plan
from frontend.notary.pending import PendingOperation
from frontend.policy.question import Decision
from frontend.telemetry.logs import log, trace_now
from frontend.telemetry.weakened import Weakened
from ipc.backends.store import ApprovalRecord
from ipc.caps import CapUse
from ipc.configuration.identity_origin import IdentityOrigin
from ipc.evidence.events import ACTION_CALL, AuditEvent
from ipc.evidence.kept_values import KeptValues
from ipc.operations.calls import CallEnd, CallKey, Open, ProofRecord, RepeatedCall, Withdrawn
from ipc.operations.standing import StandingUse
from ipc.plan import Plan

MAX_ACTION_ID = 256


@dataclass(slots=True)
class CallRecord:
    """The file of one call. `started` is monotonic seconds."""

    action_id: str
    weakened: Weakened
    trace_id: str = field(default_factory=trace_now)
    lease: Lease | None = None
    action: Action | None = None
    request_hash: str | None = None
    decision: Decision | None = None
    plan: Plan | None = None
    caps: tuple[CapUse, ...] = ()
    """The caps that the call counts for."""
    kept: KeptValues | None = None
    """The values of its request that evidence keeps."""
    calls_before: int | None = None
    calls_per_hour: int | None = None
    """The quota of its principal for one hour."""
    origin_when_held: IdentityOrigin | None = None
    """How the caller of a call that was held is known."""
    started: float = field(default_factory=time.monotonic)
    uid: int | None = None
    """The uid of the peer, if its connection shows one."""
    is_registered: bool = True
    """There is an action of this id. SECURITY: an id that names none is a text of the caller's own making, and stands
    in no event."""
    has_proven: bool = False
    """The caller's proof holds for its lease; whether it is new is the notary's to say."""
    proof_key: str | None = None
    proof: ProofRecord | None = None
    """The proof of the request, until an operation of the notary has used it."""
    unless_held: bool = False
    """A refusal gives way to the hold that the same call has already."""
    standing: StandingUse | None = None
    """The standing approval by which a call is to run that would be held."""
    key: CallKey | None = None
    """The `Idempotency-Key` of the call, once policy has allowed or held it: before, no earlier outcome is answered."""
    repeated: RepeatedCall | None = None
    """The same call was made before under this key: its outcome is answered."""
    held: ApprovalRecord | None = None
    """The hold that the same call has already: it is answered instead of the refusal."""
    is_dispatched: bool = False
    """A worker may have run it."""
    is_abandoned: bool = False
    """Its intent was resolved without a dispatch: its call is given back, and its approval over."""
    withdrawal: PendingOperation[Withdrawn] | None = None
    """The question that withdraws the call, which is asked once."""
    opening: PendingOperation[CallEnd] | None = None
    """The question that opens the call, as it was asked last."""
    unanswered: str | None = None
    """Id of the intent or the approval of an operation whose outcome is unknown: the event may be written already."""
    unheard: Open | None = None
    """The question that opened the call, if the notary hangs: the caller is answered before the withdrawal is."""
    trace: CallTrace | None = None
    """The times of its steps, if it is exported."""
    is_decided: bool = False
    """The one event of its decision is durable."""

    def __post_init__(self) -> None:
        # An agent chooses it: what is too long to be an id is cut, and can't be one afterwards either.
        if len(self.action_id) > MAX_ACTION_ID:
            self.action_id = self.action_id[:MAX_ACTION_ID] + "…"

    @classmethod
    def of_plan(cls, plan: Plan, origin: IdentityOrigin | None, weakened: Weakened) -> "CallRecord":
        """The file of a call that was held, opened again."""
        return cls(
            plan.action_id, weakened, plan.trace_id, plan=plan, kept=kept_of_plan(plan), origin_when_held=origin
        )  # fmt: skip

    def event(self, decision: str, *, event_type: str = ACTION_CALL, **more: Any) -> AuditEvent:
        """The event for this outcome as far as it is known here; `more` are further fields. The notary completes it.
        A field that is None is not in the event."""
        fields = {
            **self.caller(), **self._key(), **self._what(), **self._policy(), **self._budgets(),
            **self.weakened.fields(), **more,
        }  # fmt: skip
        return AuditEvent(event_type=event_type, trace_id=self.trace_id, decision=decision, **fields)

    def facts(self) -> dict[str, Any]:
        """All that this record knows of the call, as fields of an event."""
        return self.caller() | self._what() | self._policy() | self._budgets()

    def say(self, decision: str, code: str | None = None, cause: str | None = None) -> None:
        """The one log line of a decision; said when its event is durable. `cause` is ours, never a caller's text."""
        milliseconds = round((time.monotonic() - self.started) * 1000)
        principal = self.principal or "-"
        fields: dict[str, Any] = {"code": code} if code else {}
        if cause:
            fields["cause"] = cause
        (log.warning if decision == "error" else log.info)(
            f"{decision} {self.action_id} {principal} {milliseconds} ms", decision=decision, action_id=self.action_id,
            principal=principal, duration_ms=milliseconds, trace_id=self.trace_id, **fields,
        )  # fmt: skip

    @property
    def principal(self) -> str | None:
        """The caller, once its lease has shown it."""
        if self.plan is not None:
            return self.plan.principal
        return self.lease.principal if self.lease is not None else None

    @property
    def origin(self) -> IdentityOrigin | None:
        """How the caller is known, as far as it is."""
        return self.origin_when_held if self.lease is None else self.lease.origin

    def caller(self) -> dict[str, Any]:
        """Fields of the event: the caller and the action."""
        action = {"action_id": self.action_id} if self.is_registered else {}
        origin = {} if self.origin is None else self.origin.as_fields()
        if self.plan is not None:
            plan = self.plan
            who = {"principal": plan.principal, "owner": plan.owner, "session_id": plan.session_id}
            return {**action, **who, "lease_jti": plan.lease_jti, **origin}
        if self.lease is None:
            return action
        lease = self.lease
        who = {"principal": lease.principal, "owner": lease.owner, "session_id": lease.session_id}
        return {**action, **who, "lease_jti": lease.jti, **origin}

    def _key(self) -> dict[str, Any]:
        return {"key_thumbprint": self.lease.jkt} if self.lease is not None and self.has_proven else {}

    def _what(self) -> dict[str, Any]:
        if self.plan is not None:
            return {
                "action_version": self.plan.action_version,
                "provider_module_digest": self.plan.provider_module_digest,
                "risk_level": self.plan.risk_level,
                "request_hash": self.plan.request_hash,
                "trust_verdict": "digest_ok",
                "egress_networks": tuple(one.name for one in self.plan.egress.networks) or None,
            }
        if self.action is None:
            return {}
        return {
            "action_version": self.action.version,
            "provider_module_digest": self.action.digest,
            "risk_level": self.action.risk_level,
            "trust_verdict": self.action.trust_verdict,
            "request_hash": self.request_hash,
        }

    def _policy(self) -> dict[str, Any]:
        if self.decision is not None:
            return {
                "policy_version": self.decision.policy_version,
                "policy_rule": self.decision.rule,
                "allowed_sinks": self.decision.allowed_sinks,
            }
        if self.plan is not None:
            return {"policy_version": self.plan.policy_version, "policy_rule": self.plan.policy_rule}
        return {}

    def _budgets(self) -> dict[str, Any]:
        return {} if self.calls_before is None else {"budgets_before": {"calls_remaining": self.calls_before}}
