"""Approvals as front and notary both know them: states and their moves, the plan that is kept, the part that grows.

The notary moves an approval only by compare-and-swap along MOVES, so that of any number of operators and of the clock
exactly one wins.
"""

from typing import Final

import msgspec

from ipc.plan import Plan

PENDING: Final = "pending"
CLAIMED: Final = "claimed"
APPROVED: Final = "approved"
DENIED: Final = "denied"
EXPIRED: Final = "expired"
FAILED: Final = "failed"

MOVES: Final[frozenset[tuple[str, str]]] = frozenset(
    {
        (PENDING, CLAIMED),  # an operator's approve or deny won the race
        (PENDING, EXPIRED),  # five minutes without a decision
        (CLAIMED, APPROVED),  # the stored plan was dispatched
        (CLAIMED, DENIED),  # an operator said no
        (CLAIMED, FAILED),  # the plan could not be executed, or the gateway stopped before dispatch
    }
)

TTL_SECONDS: Final = 300.0
"""A pending approval's life; a fixed constant (docs/contract.md, "Limits")."""


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The immutable part: the plan as it will run, and how the call came to be held."""

    plan: Plan
    plan_hash: str
    identity_method: str
    has_budget: bool


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part that grows: who decided, when, and what came of it. Times as ISO 8601."""

    claimed_by: str | None = None
    claimed_at: str | None = None
    completed_at: str | None = None
    receipt_id: str | None = None
    deny_reason: str | None = None
    error_code: str | None = None


class Listed(msgspec.Struct, frozen=True):
    """What a list shows of a plan: the rest of it, perhaps megabytes, is skipped and not decoded."""

    action_version: str | None = None
    principal: str | None = None
    owner: str | None = None
    risk_level: str | None = None


class Summary(msgspec.Struct, frozen=True):
    """A body as a list has it."""

    plan: Listed = Listed()


_summary = msgspec.json.Decoder(Summary).decode


def summary_of(body: str) -> Summary:
    """Empty for a body that can't be read: the rest of its approval still shows."""
    try:
        return _summary(body)
    except (ValueError, RecursionError):
        return Summary()


def listed(body: str) -> str:
    """A body cut to what a list shows of it, JSON text."""
    return msgspec.json.encode(summary_of(body)).decode()
