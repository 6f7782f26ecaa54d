"""Call budgets of sessions: the store's counters in the interface's words.

A lease without `max_calls` has no counter and no limit. What can't be counted is refused (fail closed), and a call
that can't be given back leaves evidence instead of silence.
"""

from dataclasses import dataclass

from frontend.auth.lease import Lease
from frontend.calls.journal import Journal
from frontend.calls.record import CallRecord
from frontend.errors import GateError
from frontend.evidence.events import BUDGET_ROLLBACK_FAILED
from frontend.stores.interface import Budget, Store, StoreUnavailable
from frontend.telemetry.logs import log


@dataclass(frozen=True, slots=True)
class Budgets:
    """Looks at, debits and refunds the budget of one session."""

    store: Store
    journal: Journal

    async def snapshot(self, lease: Lease) -> int | None:
        """Calls left before policy is asked; None without a limit.

        Raises GateError budget_session_not_found, budget_store_unavailable.
        """
        if not lease.has_budget:
            return None
        try:
            budget = await self.store.budget_read(lease.session_id)
        except StoreUnavailable as error:
            raise GateError("budget_store_unavailable", cause=str(error)) from None
        return self._found(budget).remaining

    async def debit(self, lease: Lease) -> int | None:
        """Take one call, atomically; calls left afterwards. Raises as `snapshot` does, and budget_exhausted."""
        if not lease.has_budget:
            return None
        try:
            budget = await self.store.budget_debit(lease.session_id)
        except StoreUnavailable as error:
            raise GateError("budget_store_unavailable", cause=str(error)) from None
        if not self._found(budget).debited:
            raise GateError("budget_exhausted")
        return budget.remaining

    async def give_back(self, record: CallRecord, session_id: str) -> bool:
        """Refund the call of this record; False, and an event of its own, when the store could not. Never raises."""
        try:
            await self.store.budget_refund(session_id)
            return True
        except StoreUnavailable as error:
            problem = str(error)
            log.error("a call could not be given back to its budget", session_id=session_id, cause=problem)
        except Exception as error:
            problem = type(error).__name__
            log.exception("a call could not be given back to its budget", session_id=session_id)
        try:
            await self.journal.noted(
                record, BUDGET_ROLLBACK_FAILED, "error", error_code="budget_store_unavailable", reason=problem
            )
        except GateError as error:
            log.error("a budget that was not refunded left no event", trace_id=record.trace_id, cause=error.cause)
        return False

    @staticmethod
    def _found(budget: Budget) -> Budget:
        if not budget.found:
            raise GateError("budget_session_not_found")
        return budget
