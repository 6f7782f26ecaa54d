"""The outcome that a call would have: the question is made as a real call's is, and the policy in force answers it.

It executes no plan, reserves and counts no call, writes no event, and stays out of the metrics of decisions.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from frontend.actions.planning import Draft, draft
from frontend.actions.question import question_of
from frontend.actions.supposed import lease_of, mapping_of
from frontend.calls.cap_previews import judged_by_caps
from frontend.calls.caps import uses_of
from frontend.calls.deciding import TRUST_CODES, Deciding, denial_of
from frontend.calls.thresholds import with_thresholds
from frontend.errors import GateError
from frontend.limits.rates import TooMuch
from frontend.limits.turns import Owners
from frontend.notary.client import NotaryClient
from frontend.policy.engine import PolicyEngine
from frontend.schemas.large_bodies import cost_of
from frontend.schemas.parser import parse_body


class CallExplanation(msgspec.Struct, frozen=True):
    """The decision that a call would get. `code` is that of a refusal; without `rule` policy was not asked."""

    decision: str
    code: str | None = None
    rule: str | None = None
    reason: str | None = None
    policy_version: str | None = None
    request_hash: str | None = None
    assumed: tuple[str, ...] = ()


class Explaining(msgspec.Struct, frozen=True):
    """Asks the policy in force. `policy` is that of the calls, without the metrics of its decisions."""

    calls: Deciding
    policy: PolicyEngine
    notary: NotaryClient

    async def explain(
        self, principal: str, action_id: str, request: bytes | None, calls_remaining: int | None, owners: Owners
    ) -> CallExplanation:
        """`request` is the body of the call, None for none; `owners` are those who ask.

        Raises GateError action_not_found, policy_engine_unavailable, policy_engine_timeout, clock_error,
        rate_limit_exceeded, budget_store_unavailable.
        """
        registry, settings = self.calls.registry(), self.calls.settings()
        action = registry.get(action_id)
        if action is None:
            close = registry.near(action_id)
            more: dict[str, Any] = {"did_you_mean": close} if close else {}
            raise GateError("action_not_found", **more)
        assumed = [] if request is not None else ["The request is {}."]
        lease = lease_of(mapping_of(settings, principal, assumed), calls_remaining)
        supposed = CallExplanation("deny", assumed=tuple(assumed))
        if action.trust_verdict != "digest_ok":
            return replace(supposed, code=TRUST_CODES[action.trust_verdict])
        sent, learned = request or b"", self.calls.learned(action_id)

        def work() -> Draft:
            return draft(action, parse_body(sent), lease, 0, learned, settings=settings)

        try:
            if len(sent) > action.max_request_bytes:
                raise GateError("body_too_large", cause="max_request_bytes of the action")
            drafted = await self.calls.large_bodies.run(cost_of(sent), owners, work)
        except TooMuch:
            raise
        except GateError as error:
            if error.status >= 500:
                raise
            reason = error.extra.get("reason") or error.extra.get("deny_reason") or error.cause
            return replace(supposed, code=error.code, reason=reason)
        await self.calls.use_newest_policy()
        decision = await self.policy.decide(question_of(drafted, calls_remaining))
        files = self.calls.policy_files()
        decision = with_thresholds(decision, drafted, files)
        if denial_of(decision, drafted) is None:
            decision, _ = await judged_by_caps(self.notary, action_id, uses_of(drafted, files), decision)
        supposed = replace(
            supposed, rule=decision.rule, policy_version=decision.policy_version, request_hash=drafted.plan.request_hash
        )
        if (denial := denial_of(decision, drafted)) is not None:
            return replace(supposed, code=denial.code, reason=denial.extra["deny_reason"])
        if calls_remaining == 0:
            return replace(supposed, code="budget_exhausted")
        return replace(supposed, decision="pending_approval" if decision.requires_approval else "allow")
