"""A lease as the gateway issues it (docs/contract.md, "Lease")."""

from typing import Any

from .noun import LEFT_OUT, NeverNull, Noun

KEYS_HEADER = "X-Idempotency-Seconds"
"""Beside a lease: the gateway knows idempotency keys, each for so long."""


class GrantedBudgets(Noun, frozen=True, kw_only=True):
    """The session's budget: as asked for, or less by the caller's quota."""

    max_calls: int


class JudgedProof(Noun, frozen=True, kw_only=True):
    """The proof of a request to the edge's `/mcp` holds, and is used now."""

    token_binding: str
    """`dpop`."""


class Lease(Noun, frozen=True, kw_only=True):
    """A lease: who holds the key that it is bound to may call until it is over."""

    lease_jwt: str
    """The signed token; goes into `Authorization: DPoP <lease_jwt>`."""
    session_id: str
    lease_jti: str
    expires_at: str
    """UTC, milliseconds, `Z`."""
    budgets: NeverNull[GrantedBudgets] = LEFT_OUT
    """Left out for a session without a limit."""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The fields but the token."""
        return [pair for pair in Noun.__rich_repr__(self) if pair[0] != "lease_jwt"]
