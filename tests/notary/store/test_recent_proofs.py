"""Proofs that need not be looked up: those that were used and still count are never among them."""

import random

from notary.store.proofs import BUCKET_SECONDS, REPLAY_SECONDS
from notary.store.recent_proofs import RecentProofs
from tests.notary.samples import NOW

OLD_ENOUGH = REPLAY_SECONDS + BUCKET_SECONDS


def complete() -> RecentProofs:
    """A memory that has seen every proof that counts from NOW on."""
    recent = RecentProofs()
    recent.note("the first one", NOW - OLD_ENOUGH)
    return recent


def test_a_new_proof_is_ruled_out_and_one_that_was_used_is_not_until_it_counts_no_more() -> None:
    recent = complete()
    assert recent.rules_out("p", NOW)
    recent.note("p", NOW)
    for later in (0, 1, 59, 60, 121, REPLAY_SECONDS - 0.001):
        assert not recent.rules_out("p", NOW + later), later
    assert recent.rules_out("p", NOW + OLD_ENOUGH + BUCKET_SECONDS)


def test_nothing_is_ruled_out_while_a_proof_of_an_earlier_notary_may_count() -> None:
    recent = RecentProofs()
    assert not recent.rules_out("p", NOW)
    recent.note("q", NOW)
    assert not recent.rules_out("p", NOW + REPLAY_SECONDS)
    assert recent.rules_out("p", NOW + OLD_ENOUGH)


def test_nothing_is_ruled_out_while_the_clock_stands_behind_what_it_told() -> None:
    recent = complete()
    recent.note("p", NOW + 10)
    assert not recent.rules_out("q", NOW + 9)
    recent.note("q", NOW + 9)
    assert recent.rules_out("r", NOW + 10)
    assert not recent.rules_out("q", NOW + 9 + REPLAY_SECONDS)


def test_no_proof_that_counts_is_ever_ruled_out_whatever_the_clock_does() -> None:
    chance, recent, now = random.Random(7), complete(), NOW
    used: dict[str, float] = {}
    for number in range(20_000):
        now += chance.choice((0.0, 0.01, 1.0, 40.0, 9_000.0, -5.0))
        key = f"p{number}"
        recent.note(key, now)
        used[key] = now
        again = chance.choice(list(used)[-50:])
        if used[again] + REPLAY_SECONDS > now:
            assert not recent.rules_out(again, now), (again, used[again], now)
