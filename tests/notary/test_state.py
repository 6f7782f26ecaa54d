"""Limits of a notary beside what its fronts wait for and what documents promise."""

from frontend.notary.client import WAIT_SECONDS
from notary.state import DEFAULT_LIMITS


def test_a_look_has_ended_before_its_front_gives_up_and_answers_are_remembered_for_longer() -> None:
    assert DEFAULT_LIMITS.look_seconds < WAIT_SECONDS < DEFAULT_LIMITS.remembered_seconds


def test_erased_requests_leave_the_wal_within_a_minute() -> None:
    assert DEFAULT_LIMITS.wal_seconds <= 60.0
