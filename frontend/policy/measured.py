"""A policy engine whose requests are timed and whose decisions are counted, whatever engine answers."""

import time

from msgspec import UNSET

from frontend.errors import GateError
from frontend.policy.engine import Commit, PolicyEngine, PolicyRefused, PolicySources, PolicyUnreached
from frontend.policy.question import Decision, Question
from frontend.telemetry.metrics import DECIDE, LOAD, POLICY_REFUSED, Metrics


class MeasuredPolicy:
    """Implements PolicyEngine over another one."""

    def __init__(self, engine: PolicyEngine, metrics: Metrics) -> None:
        self._engine = engine
        self._metrics = metrics

    @property
    def policy_version(self) -> str:
        """Version of the policy in force; empty before the first one."""
        return self._engine.policy_version

    @property
    def is_available(self) -> bool:
        """Whether a question would be answered now, as far as is known."""
        return self._engine.is_available

    async def decide(self, question: Question) -> Decision:
        """See PolicyEngine."""
        began = time.perf_counter()
        try:
            decision = await self._engine.decide(question)
        except GateError as error:
            self._metrics.policy_errors.add(DECIDE, error.code)
            self._metrics.policy_seconds.observe(time.perf_counter() - began, DECIDE)
            raise
        self._metrics.policy_seconds.observe(time.perf_counter() - began, DECIDE)
        if decision.requires_approval and question.calls_remaining is UNSET:
            return decision  # a hold shows the budget: policy is asked again with it, and counted then
        said = "deny" if not decision.allow else "pending_approval" if decision.requires_approval else "allow"
        self._metrics.decided(said, decision.rule)
        return decision

    async def require_life(self) -> None:
        """See PolicyEngine."""
        await self._engine.require_life()

    async def load(self, sources: PolicySources, commit: Commit | None = None) -> None:
        """See PolicyEngine."""
        began = time.perf_counter()
        try:
            await self._engine.load(sources, commit)
        except PolicyRefused:
            self._metrics.policy_errors.add(LOAD, POLICY_REFUSED)
            raise
        except PolicyUnreached as error:
            self._metrics.policy_errors.add(LOAD, error.code)
            raise
        finally:
            self._metrics.policy_seconds.observe(time.perf_counter() - began, LOAD)
