"""Call budgets of sessions, as far as a call asks for them before it is decided. The notary counts.

A lease without `max_calls` has no counter and no limit. What can't be counted is refused (fail closed).
"""

from dataclasses import dataclass

from frontend.auth.lease import Lease
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from ipc.operations.leases import ReadBudget


@dataclass(frozen=True, slots=True)
class Budgets:
    """Looks at the budget of one session."""

    notary: NotaryClient

    async def snapshot(self, lease: Lease) -> int | None:
        """Calls left before policy is asked; None without a limit.

        Raises GateError budget_session_not_found, budget_store_unavailable.
        """
        if not lease.has_budget:
            return None
        with notary_errors_as("budget_store_unavailable"):
            budget = await self.notary.ask(ReadBudget(lease.session_id))
        if not budget.found:
            raise GateError("budget_session_not_found")
        return budget.remaining
