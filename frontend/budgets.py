"""Call budgets of sessions: the store's counters in the interface's words.

A lease without `max_calls` has no counter and no limit. What can't be counted is refused (fail closed), and a call
that can't be given back leaves evidence instead of silence.
"""

from dataclasses import dataclass

import structlog

from frontend.auth.lease import Lease
from frontend.errors import GateError
from frontend.stores.interface import Budget, Store, StoreUnavailable

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Budgets:
    """Looks at, debits and refunds the budget of one session."""

    store: Store

    async def snapshot(self, lease: Lease) -> int | None:
        """Calls left before policy is asked; None without a limit.

        Raises GateError budget_session_not_found, budget_store_unavailable, and budget_exhausted: at zero policy is
        not asked.
        """
        if not lease.has_budget:
            return None
        try:
            budget = await self.store.budget_read(lease.session_id)
        except StoreUnavailable as error:
            raise GateError("budget_store_unavailable", cause=str(error)) from None
        return self._remaining(budget, budget.found and budget.remaining > 0)

    async def debit(self, lease: Lease) -> int | None:
        """Take one call, atomically; calls left afterwards. Raises as `snapshot` does."""
        if not lease.has_budget:
            return None
        try:
            budget = await self.store.budget_debit(lease.session_id)
        except StoreUnavailable as error:
            raise GateError("budget_store_unavailable", cause=str(error)) from None
        return self._remaining(budget, budget.debited)

    async def refund(self, session_id: str) -> bool:
        """Give one call back; False when the store could not: the caller leaves evidence of that."""
        try:
            await self.store.budget_refund(session_id)
        except StoreUnavailable as error:
            log.error("a call could not be given back to its budget", session_id=session_id, cause=str(error))
            return False
        return True

    @staticmethod
    def _remaining(budget: Budget, has_call: bool) -> int:
        if not budget.found:
            raise GateError("budget_session_not_found")
        if not has_call:
            raise GateError("budget_exhausted")
        return budget.remaining
