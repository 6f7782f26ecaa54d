"""Token buckets over a clock that the test moves."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.limits.bucket import SharedBucket


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_full_bucket_gives_its_burst_and_then_says_how_long_to_wait() -> None:
    clock = Clock()
    bucket = SharedBucket(rate=50, burst=50, clock=clock)
    assert [bucket.take("one") for _ in range(50)] == [None] * 50
    assert bucket.take("one") == pytest.approx(0.02)


def test_tokens_come_back_at_the_rate_and_never_beyond_the_burst() -> None:
    clock = Clock()
    bucket = SharedBucket(rate=8, burst=2, clock=clock)
    assert [bucket.take("one"), bucket.take("one")] == [None, None]
    clock.now += 0.0625
    assert bucket.take("one") == pytest.approx(0.0625)
    clock.now += 0.0625
    assert bucket.take("one") is None
    clock.now += 1000
    assert [bucket.take("one"), bucket.take("one"), bucket.take("one") is None] == [None, None, False]


def test_refused_takes_do_not_push_the_next_token_away() -> None:
    clock = Clock()
    bucket = SharedBucket(rate=1, burst=1, clock=clock)
    assert bucket.take("one") is None
    for _ in range(10):
        clock.now += 0.0999
        assert bucket.take("one") is not None
    clock.now += 0.01
    assert bucket.take("one") is None


def test_a_clock_that_steps_back_neither_drains_nor_refills() -> None:
    clock = Clock()
    bucket = SharedBucket(rate=1, burst=1, clock=clock)
    assert bucket.take("one") is None
    clock.now -= 50
    assert bucket.take("one") == pytest.approx(1)
    clock.now += 50
    assert bucket.take("one") == pytest.approx(1)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_could_never_give_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="bucket"):
        SharedBucket(rate, burst)


def took(bucket: SharedBucket, holder: str, tries: int) -> int:
    return sum(bucket.take(holder) is None for _ in range(tries))


def test_one_that_comes_later_gets_its_part_however_much_the_first_has_taken() -> None:
    clock = Clock()
    bucket = SharedBucket(50, 50, clock)
    assert took(bucket, "flood", 1000) == 50
    assert took(bucket, "quiet", 1) == 1
    assert took(bucket, "quiet", 1000) == 24
    assert took(bucket, "flood", 1000) == 0


def test_a_flood_leaves_others_all_that_is_theirs_and_takes_the_rest() -> None:
    clock = Clock()
    bucket, got = SharedBucket(50, 50, clock), Counter[str]()
    for turn in range(1000):  # ten seconds
        clock.now += 0.01
        got["flood"] += took(bucket, "flood", 20)
        if turn % 10 == 0:
            got["quiet"] += took(bucket, "quiet", 1)
    assert got["quiet"] == 100
    assert 395 <= got["flood"] <= 455


@given(st.integers(1, 8))
def test_those_who_want_all_get_equal_parts_and_together_what_comes_back(holders: int) -> None:
    clock = Clock()
    bucket, got = SharedBucket(50, 50, clock), Counter[str]()
    for turn in range(300):
        clock.now += 0.01
        if turn == 100:
            got.clear()
        for number in range(holders):
            got[str(number)] += took(bucket, str(number), 3)
    assert sum(got.values()) == pytest.approx(100, abs=holders + 1)
    assert max(got.values()) - min(got.values()) <= 2


def test_the_seconds_to_wait_are_those_until_a_holder_s_part_is_there() -> None:
    clock = Clock()
    bucket = SharedBucket(10, 10, clock)
    assert took(bucket, "one", 5) == took(bucket, "two", 5) == 5
    seconds = bucket.take("one")
    assert seconds == pytest.approx(0.2)
    clock.now += 0.21
    assert took(bucket, "one", 2) == 1


def test_more_holders_than_there_are_rows_are_refused_until_one_is_idle() -> None:
    clock = Clock()
    bucket = SharedBucket(1, 1, clock, cells=memoryview(bytearray(16 * 3)))
    assert [bucket.take("one"), bucket.take("two")] == [None, None]
    assert bucket.take("three") == pytest.approx(1)
    clock.now += 2
    assert bucket.take("three") is None
