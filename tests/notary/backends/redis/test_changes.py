"""Numbers as Redis has them, and times as it wants them."""

import pytest

from notary.backends.redis.changes import milliseconds, number
from notary.store.contract import StoreGone


def test_a_time_to_live_is_told_in_milliseconds_and_is_one_at_least() -> None:
    assert [milliseconds(seconds) for seconds in (180.0, 0.0015, 0.001, 0.0001, -5.0)] == ["180000", "2", "1", "1", "1"]


def test_a_number_that_redis_does_not_have_is_none_at_all_and_one_that_makes_no_sense_is_no_answer() -> None:
    assert [number(text) for text in ("7", "0", "", None)] == [7, 0, 0, 0]
    with pytest.raises(StoreGone, match="makes no sense"):
        number("many")
