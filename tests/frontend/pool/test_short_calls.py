"""Kinds of calls that are brief: what the last ones took says it, and nothing else."""

from frontend.pool.short_calls import BRIEF_FUEL, BRIEF_US, MAX_KINDS, ShortCallEstimate


def test_nothing_is_brief_before_it_was_seen_to_be() -> None:
    brevity = ShortCallEstimate()
    assert not brevity.is_brief("digest")
    brevity.note("digest", 300, 17_000)
    assert brevity.is_brief("digest")
    assert not brevity.is_brief("other")


def test_what_takes_much_fuel_or_long_or_what_nobody_knows_is_not_brief() -> None:
    for microseconds, fuel in ((300, BRIEF_FUEL), (BRIEF_US, 10), (300, None)):
        brevity = ShortCallEstimate()
        brevity.note("digest", 300, 17_000)
        brevity.note("digest", microseconds, fuel)
        assert not brevity.is_brief("digest"), (microseconds, fuel)


def test_one_call_that_took_long_is_forgotten_after_a_few_that_did_not() -> None:
    brevity = ShortCallEstimate()
    brevity.note("digest", 60_000_000, 10 * BRIEF_FUEL)
    calls = 0
    while not brevity.is_brief("digest"):
        brevity.note("digest", 300, 17_000)
        calls += 1
    assert 2 <= calls <= 6


def test_only_the_kinds_that_were_seen_last_are_remembered() -> None:
    brevity = ShortCallEstimate()
    for number in range(MAX_KINDS + 10):
        brevity.note("first", 300, 17_000)
        brevity.note(f"kind-{number}", 300, 17_000)
    assert len(brevity) == MAX_KINDS
    assert brevity.is_brief("first")
    assert not brevity.is_brief("kind-0")
