"""Approval states as people and agents see them: no I/O (docs/decisions/approvals.md, "Approvals").

The table of moves is that of ipc/approvals.py, which the notary holds every move against. `as_polled` is what agents
see.
"""

from typing import Final

from ipc.approvals import APPROVED, CLAIMED, DENIED, EXPIRED, FAILED, MOVES, PENDING

STATES: Final = (PENDING, CLAIMED, APPROVED, DENIED, EXPIRED, FAILED)

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
