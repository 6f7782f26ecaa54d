"""Call budgets of sessions, as far as a front reads them. The notary debits, in the operation that opens a call.

A front reads a budget before that only if something depends on it: the policy in force, a person who decides, the event
of a denial, or a session that was refused as spent, which must not take a worker again. A lease without `max_calls` has
no counter and no limit. A budget that can't be read refuses the call (fail closed).
"""

from typing import Final

from frontend.auth.lease import Lease
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from ipc.operations.leases import ReadBudget

MAX_SPENT: Final = 4096
"""Sessions whose budget is remembered as spent; the oldest makes room."""


class BudgetCheck:
    """Reads budgets, and remembers which sessions have spent theirs."""

    def __init__(self, notary: NotaryClient) -> None:
        self._notary = notary
        self._spent: dict[str, None] = {}

    def is_unread(self, lease: Lease) -> bool:
        """True if the lease has a budget and policy may be asked without it."""
        return lease.has_budget and lease.session_id not in self._spent

    async def snapshot(self, lease: Lease) -> int | None:
        """Calls left; None for a lease without budgets.

        Raises GateError budget_session_not_found, budget_store_unavailable.
        """
        if not lease.has_budget:
            return None
        with notary_errors_as("budget_store_unavailable"):
            budget = await self._notary.ask(ReadBudget(lease.session_id))
        if not budget.found:
            raise GateError("budget_session_not_found")
        if budget.remaining > 0:  # a call was given back
            self._spent.pop(lease.session_id, None)
        return budget.remaining

    def note_spent(self, session_id: str) -> None:
        """A call of this session was refused as `budget_exhausted`."""
        self._spent[session_id] = None
        if len(self._spent) > MAX_SPENT:
            del self._spent[next(iter(self._spent))]
