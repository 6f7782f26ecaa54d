"""Proofs that are known to have been used: so many of them, the oldest leaves first."""

from frontend.auth.replays import MAX_REPLAYS, Replays


def test_a_front_remembers_4096_copies_and_forgets_the_oldest_first() -> None:
    replays = Replays()
    for number in range(4096):  # docs/decisions/evidence.md, "Audit, receipts, intents"
        replays.add(str(number))
    assert len(replays) == MAX_REPLAYS
    assert "0" in replays
    replays.add("another")
    assert len(replays) == MAX_REPLAYS
    assert ["0" in replays, "1" in replays, "another" in replays] == [False, True, True]


def test_one_that_is_known_already_takes_no_other_s_place() -> None:
    replays = Replays(2)
    for key in ("a", "b", "b", "a"):
        replays.add(key)
    assert ["a" in replays, "b" in replays, "c" in replays] == [True, True, False]
    assert len(replays) == 2
