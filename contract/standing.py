"""Standing approvals as operators add, list and revoke them (docs/contract.md, "Standing approvals")."""

from typing import Any, Literal

from .noun import LEFT_OUT, Listed, NeverNull, Noun


class CallCondition(Noun, frozen=True, kw_only=True):
    """A condition on one value of a call."""

    pointer: str
    """One of the manifest's `policy_input`."""
    op: Literal["<=", ">=", "==", "in"]
    value: Any
    """A number for `<=` and `>=`, a list of texts, numbers and truth values for `in`, one of them for `==`."""


class StandingApproval(Noun, frozen=True, kw_only=True):
    """Calls of one action by one principal that run without waiting for a person."""

    standing_id: str
    action_id: str
    principal: str
    operator: str
    """The operator who signed it."""
    origin: str
    """The name of the ledger that it was signed for: of gateways that share a store, only those with this ledger run
    calls by it."""
    created_at: str
    until: str
    max_calls: NeverNull[int] = LEFT_OUT
    """Calls that it is good for; absent for any number."""
    where: Listed[CallCondition] = LEFT_OUT
    """Conditions that a call must keep, all of them; absent for one without conditions."""
    calls: int
    """Calls that have run by it."""
    signature: str
    """The text that the operator signed, a compact JWS (docs/evidence.md)."""


class StandingApprovals(Noun, frozen=True, kw_only=True):
    """The standing approvals that are in force; that which ends first is the first one."""

    standing: tuple[StandingApproval, ...]
    origin: str
    """The name of this gateway's ledger, for which a new one is signed."""


class StandingRevoked(Noun, frozen=True, kw_only=True):
    """It lets no call run from now on."""

    standing_id: str
    action_id: str
    principal: str
    calls: int
    """Calls that have run by it."""
