"""The share of one of many: so much for each free place; the last eighth is for callers that hold none."""

import pytest

from frontend.limits.shares import is_among_the_last, may_have_another


@pytest.mark.parametrize(
    ("held", "free", "may"),
    [(26, 9, True), (27, 9, False), (1, 9, True), (1, 8, False), (0, 8, True), (0, 1, True), (0, 0, False)],
)
def test_a_holder_may_have_three_for_each_that_is_free_and_a_newcomer_one_of_the_last_eighth(
    held: int, free: int, may: bool
) -> None:
    assert may_have_another(held, 3, free, 64) is may


@pytest.mark.parametrize(("count", "ceiling", "is_last"), [(8, 64, True), (9, 64, False), (1, 8, True), (1, 7, False)])
def test_the_last_eighth_is_counted_in_whole_places(count: int, ceiling: int, is_last: bool) -> None:
    assert is_among_the_last(count, ceiling) is is_last
