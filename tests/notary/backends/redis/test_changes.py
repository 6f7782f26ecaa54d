"""Numbers as Redis has them, and times as it wants them."""

import pytest

from notary.backends.redis.changes import milliseconds, number
from notary.store.contract import StoreGone


def test_a_time_to_live_is_in_milliseconds_and_at_least_one() -> None:
    assert [milliseconds(seconds) for seconds in (180.0, 0.0015, 0.001, 0.0001, -5.0)] == ["180000", "2", "1", "1", "1"]


def test_a_missing_number_is_none_and_a_malformed_one_is_an_error() -> None:
    assert [number(text) for text in ("7", "0", "", None)] == [7, 0, 0, 0]
    with pytest.raises(StoreGone, match="makes no sense"):
        number("many")
