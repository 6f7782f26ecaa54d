"""The approval table: every pair of states, and nothing outside it."""

import itertools

import pytest

from frontend.calls.approvals import states as s
from ipc.approvals import ENDED, MOVES

ALLOWED = {
    ("pending", "claimed"),
    ("pending", "expired"),
    ("claimed", "approved"),
    ("claimed", "denied"),
    ("claimed", "failed"),
}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(s.STATES, s.STATES)))
def test_only_the_moves_of_the_table_are_moves(before: str, after: str) -> None:
    if (before, after) in ALLOWED:
        s.check_move(before, after)
    else:
        with pytest.raises(ValueError, match=f"from {before} to {after}"):
            s.check_move(before, after)


def test_an_ended_approval_never_changes() -> None:
    assert not [move for move in MOVES if move[0] in ENDED]


def test_a_pending_record_is_expired_at_the_very_instant_of_its_time() -> None:
    assert s.state_at("pending", 100.0, 99.999) == "pending"
    assert s.state_at("pending", 100.0, 100.0) == "expired"
    assert s.state_at("claimed", 100.0, 200.0) == "claimed"


def test_a_claimed_approval_is_pending_to_its_agent() -> None:
    assert [s.as_polled(state) for state in s.STATES] == [
        "pending", "pending", "approved", "denied", "expired", "failed",
    ]  # fmt: skip
