"""Token buckets over a clock that the test moves."""

import pytest

from frontend.limits.bucket import TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_full_bucket_gives_its_burst_and_then_says_how_long_to_wait() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=50, burst=50, clock=clock)
    assert [bucket.take() for _ in range(50)] == [None] * 50
    assert bucket.take() == pytest.approx(0.02)


def test_tokens_come_back_at_the_rate_and_never_beyond_the_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=8, burst=2, clock=clock)
    assert [bucket.take(), bucket.take()] == [None, None]
    clock.now += 0.0625
    assert bucket.take() == pytest.approx(0.0625)
    clock.now += 0.0625
    assert bucket.take() is None
    clock.now += 1000
    assert [bucket.take(), bucket.take(), bucket.take() is None] == [None, None, False]


def test_refused_takes_do_not_push_the_next_token_away() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=1, burst=1, clock=clock)
    assert bucket.take() is None
    for _ in range(10):
        clock.now += 0.0999
        assert bucket.take() is not None
    clock.now += 0.01
    assert bucket.take() is None


def test_a_clock_that_steps_back_neither_drains_nor_refills() -> None:
    clock = Clock()
    bucket = TokenBucket(rate=1, burst=1, clock=clock)
    assert bucket.take() is None
    clock.now -= 50
    assert bucket.take() == pytest.approx(1)
    clock.now += 50
    assert bucket.take() == pytest.approx(1)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_could_never_give_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="bucket"):
        TokenBucket(rate, burst)
