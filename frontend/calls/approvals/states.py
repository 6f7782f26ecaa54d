"""Approval states and their moves: one table, no I/O (docs/decisions.md, "Approvals").

The store moves a record only by compare-and-swap along this table, so that of any number of operators and of the clock
exactly one wins. `as_polled` is what agents see.
"""

from typing import Final

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

STATES: Final = (PENDING, CLAIMED, APPROVED, DENIED, EXPIRED, FAILED)
LISTABLE: Final = (PENDING, CLAIMED, APPROVED, DENIED, FAILED)
"""What the `status` filter of the operator's list accepts (interface specification, "Approval states")."""
ENDED: Final = frozenset({APPROVED, DENIED, EXPIRED, FAILED})

TTL_SECONDS: Final = 300.0
"""A pending approval's life; a fixed constant (interface specification, "Limits")."""
KEEP_ENDED_SECONDS: Final = 24 * 3600.0 + 3700.0
"""Counted from `expires_at`. A plan that was claimed in its last second may run for an hour (manifest
`resource_limits.timeout_seconds`), and its record is kept for a day after that."""
MAX_PENDING_PER_SESSION: Final = 20

RETRY_AFTER_SECONDS: Final = {PENDING: 2, CLAIMED: 1}
"""Hint for pollers while nothing is decided."""


def check_move(from_state: str, to_state: str) -> None:
    """Raises ValueError for a move that the table does not have: such a call is a mistake in this program."""
    if (from_state, to_state) not in MOVES:
        raise ValueError(f"an approval never moves from {from_state} to {to_state}")


def state_at(state: str, expires_at: float, now: float) -> str:
    """The state to report: a pending record whose time is over is expired, whether or not the sweep has been there."""
    return EXPIRED if state == PENDING and now >= expires_at else state


def as_polled(state: str) -> str:
    """The `status` that agents poll: a claimed approval is still pending to them."""
    return PENDING if state == CLAIMED else state
