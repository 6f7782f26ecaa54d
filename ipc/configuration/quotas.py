"""Quotas: limits for all leases of a principal together, set in its mapping, or for all in policy data.

An agent chooses the budget of a lease; an operator chooses the quota. The notary counts
(docs/decisions/budgets.md, "Pipeline and budgets").
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

MAX_QUOTA: Final = 2**31 - 1
Limit = Annotated[int, Meta(ge=0, le=MAX_QUOTA)]


class Quota(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Limits of one principal; None: without this one."""

    max_calls_per_hour: Limit | None = None
    """Calls of all its sessions in any sixty minutes, held calls included."""
    max_sessions: Limit | None = None
    """Leases that live at once."""
    max_calls_per_session: Limit | None = None
    """The most that a lease gets as `max_calls`: one that asks for more, or for none, gets this."""

    def over(self, other: "Quota") -> "Quota":
        """This one, with what it leaves open from another."""
        return Quota(
            other.max_calls_per_hour if self.max_calls_per_hour is None else self.max_calls_per_hour,
            other.max_sessions if self.max_sessions is None else self.max_sessions,
            other.max_calls_per_session if self.max_calls_per_session is None else self.max_calls_per_session,
        )

    def max_calls(self, wanted: int | None) -> int | None:
        """The `max_calls` of a lease that asks for `wanted`."""
        if self.max_calls_per_session is None or wanted is None:
            return self.max_calls_per_session if wanted is None else wanted
        return min(wanted, self.max_calls_per_session)


NO_QUOTA: Final = Quota()
