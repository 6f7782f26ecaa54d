"""The steps of a call from its action to policy's decision, for calls that are made and for previews of them.

resolve -> draft -> decide. Guarantees that a preview is decided as the call would be. Makes no effect: it debits no
budget, holds nothing and writes no event.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from frontend.actions.planning import Draft, draft
from frontend.actions.question import question_of
from frontend.actions.registry import Action, Registry
from frontend.actions.targets import NOTHING_LEARNED, Learned
from frontend.auth.lease import Lease
from frontend.calls.budgets import BudgetCheck
from frontend.calls.caps import uses_of
from frontend.calls.record import CallRecord
from frontend.calls.thresholds import with_thresholds
from frontend.errors import GateError
from frontend.limits.turns import Owners
from frontend.policy.acl import PolicyFiles
from frontend.policy.engine import PolicyEngine
from frontend.policy.question import BudgetUnread, Decision
from frontend.schemas.large_bodies import LargeBodies, cost_of
from frontend.schemas.parser import parse_body
from ipc.configuration.quorum import Quorum, configured, several, stricter
from ipc.plan import UndecidedPlan
from ipc.settings import Settings

TRUST_CODES = {"mismatch": "action_digest_mismatch", "not_registered": "action_not_registered"}


class Deciding(msgspec.Struct, frozen=True):
    """Finds the action of a call, drafts its plan and has policy decide. The call's record gets all that it finds."""

    settings: Callable[[], Settings]
    registry: Callable[[], Registry]
    policy: PolicyEngine
    budgets: BudgetCheck
    learned: Callable[[str], Learned]
    use_newest_policy: Callable[[], Awaitable[None]]
    policy_files: Callable[[], PolicyFiles | None]
    large_bodies: LargeBodies = msgspec.field(default_factory=LargeBodies)

    def resolve(self, record: CallRecord) -> Action:
        """The action of a call. Raises GateError action_not_found, action_digest_mismatch, action_not_registered."""
        registry = self.registry()
        action = registry.get(record.action_id)
        if action is None:
            close = registry.near(record.action_id)
            more: dict[str, Any] = {"did_you_mean": close} if close else {}
            raise GateError("action_not_found", cause=_unregistered(record.action_id), **more)
        record.action = action
        if action.trust_verdict != "digest_ok":
            raise GateError(TRUST_CODES[action.trust_verdict])
        return action

    async def drafted(
        self, record: CallRecord, sent: bytes, action: Action, lease: Lease, epoch: int, owners: Owners
    ) -> Draft:
        """Parse and draft in one turn, so that no parsed body waits: it takes many times the memory of its bytes.
        Raises GateError as parse_body and draft do."""
        learned = self.learned(action.action_id) if action.has_targets else NOTHING_LEARNED

        def work() -> Draft:
            return draft(action, parse_body(sent), lease, epoch, learned, settings=self.settings())

        drafted = await self.large_bodies.run(cost_of(sent), owners, work)
        record.request_hash, record.kept = drafted.plan.request_hash, drafted.kept
        return drafted

    async def decide(self, record: CallRecord, lease: Lease, drafted: Draft) -> Decision:
        """Policy's decision. The budget is read before only if the decision may depend on it, and afterwards for a
        denial, whose event has it. A hold shows it: policy is asked again once it is read. Raises GateError
        policy_denied, and those of policy and budget."""
        asked = time.monotonic()
        await self.use_newest_policy()
        decision = await self._decided_unread(drafted) if self.budgets.is_unread(lease) else None
        if decision is None or decision.requires_approval:
            record.calls_before = await self.budgets.snapshot(lease)
            # SECURITY: a right that was revoked meanwhile must hold nothing: its holds have been ended by now.
            await self.use_newest_policy()
            decision = await self._decided(drafted, record.calls_before)
        record.decision = decision
        if record.trace is not None:
            record.trace.policy = (asked, time.monotonic())
        refusal = denial_of(decision, drafted)
        if refusal is not None:
            if record.calls_before is None:
                record.calls_before = await self.budgets.snapshot(lease)
            raise refusal
        record.caps = uses_of(drafted, self.policy_files())
        return decision

    async def decide_again(self, record: CallRecord, lease: Lease, drafted: Draft) -> Decision:
        """Policy's decision about an allowed call that has to be held after all, with the budget read. Raises as
        `decide` does."""
        record.calls_before = await self.budgets.snapshot(lease)
        # SECURITY: the call has waited for secrets and a worker. A right that was revoked meanwhile holds nothing.
        await self.use_newest_policy()
        decision = record.decision = await self._decided(drafted, record.calls_before)
        refusal = denial_of(decision, drafted)
        if refusal is not None:
            raise refusal
        return decision

    def quorum(self, decision: Decision, plan: UndecidedPlan) -> Quorum | None:
        """The approvals that a held call needs, by configuration and policy: those that satisfy both."""
        rules = self.settings().approvals.quorum
        return stricter(configured(rules, plan.action_id, plan.risk_level), several(decision.quorum))

    async def _decided(self, drafted: Draft, calls_remaining: int | UnsetType | None) -> Decision:
        decision = await self.policy.decide(question_of(drafted, calls_remaining))
        return with_thresholds(decision, drafted, self.policy_files())

    async def _decided_unread(self, drafted: Draft) -> Decision | None:
        """The decision without the budget; None if it may depend on that."""
        try:
            return await self._decided(drafted, UNSET)
        except BudgetUnread:
            return None


def denial_of(decision: Decision, drafted: Draft) -> GateError | None:
    """The refusal that a decision is; None where it allows or holds the call."""
    if not decision.allow:
        return GateError("policy_denied", deny_reason=decision.deny_reason, rule=decision.rule)
    if not set(drafted.plan.sinks) <= set(decision.allowed_sinks):
        return GateError("policy_denied", deny_reason="policy does not allow every sink of this action")
    return None


def _unregistered(action_id: str) -> str:
    """The text in evidence instead of an unknown id: a reader who has the id can compare the digest."""
    digest = hashlib.sha256(action_id.encode()).hexdigest()
    return f"no registered action: an id of {len(action_id)} characters, sha256:{digest}"
