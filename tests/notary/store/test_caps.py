"""The amounts that caps count, once in the ledger and once in a real Redis."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.caps import end_of_step, rounded, text_of, units_of
from notary.store import cap_rows, caps
from notary.store.caps import NOTHING, CapAmount, CapCounter, gone_at
from tests.notary.samples import NOW
from tests.notary.store.conftest import UnitOfStore
from tests.support.properties import MANY

COUNTER = CapCounter("refund", "/amount", "principal", 3600, "uid:1000")
UNTIL = end_of_step(NOW, 3600)


def test_an_amount_counts_until_its_whole_step_has_left_the_window(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.caps.amount(COUNTER, NOW) == NOTHING
        store.caps.add(COUNTER, UNTIL, 7)
        store.caps.add(COUNTER, UNTIL, 5)
        assert store.caps.amount(COUNTER, NOW) == CapAmount(12, 0)
    with unit() as store:
        assert store.caps.amount(COUNTER, UNTIL + 3599) == CapAmount(12, 0)
        assert store.caps.amount(COUNTER, UNTIL + 3600) == NOTHING
        assert store.caps.amount(COUNTER, NOW - 3600) == CapAmount(12, 0), "a clock that was set back frees nothing"
        for other in (COUNTER._replace(subject="b"), COUNTER._replace(pointer="/b"), COUNTER._replace(per="all")):
            assert store.caps.amount(other, NOW) == NOTHING


def test_an_amount_is_taken_back_once_and_one_that_was_not_added_never(unit: UnitOfStore) -> None:
    with unit() as store:
        store.caps.take(COUNTER, UNTIL, 7)
        store.caps.mark(COUNTER, UNTIL, 7)
        store.caps.add(COUNTER, UNTIL, 7)
        assert store.caps.amount(COUNTER, NOW) == CapAmount(7, 0)
    with unit() as store:
        store.caps.take(COUNTER, UNTIL, 7)
        store.caps.take(COUNTER, UNTIL + 60, 7)
    with unit() as store:
        assert store.caps.amount(COUNTER, NOW) == NOTHING


def test_an_unknown_outcome_counts_and_is_told(unit: UnitOfStore) -> None:
    with unit() as store:
        store.caps.add(COUNTER, UNTIL, 7)
        store.caps.add(COUNTER, UNTIL, 5)
    with unit() as store:
        store.caps.mark(COUNTER, UNTIL, 5)
    with unit() as store:
        assert store.caps.amount(COUNTER, NOW) == CapAmount(12, 5)


@MANY
@given(st.lists(st.integers(0, 10**27), min_size=1, max_size=8))
def test_huge_and_tiny_amounts_are_added_and_taken_back_exactly(amounts: list[int]) -> None:
    texts = [text_of(one) for one in amounts]
    assert [units_of(one) for one in texts] == amounts
    assert [rounded(Decimal(one)) for one in texts] == amounts
    assert sum(map(Decimal, texts)) == Decimal(text_of(sum(amounts)))


def test_huge_and_tiny_amounts_add_up_in_the_store_without_a_lost_digit(unit: UnitOfStore) -> None:
    amounts = [1, 10**27, 999_999_999, 10**9, 10**27 - 1, 123_456_789_012_345_678_901]
    with unit() as store:
        for one in amounts:
            store.caps.add(COUNTER, UNTIL, one)
    with unit() as store:
        assert store.caps.amount(COUNTER, NOW).total == sum(amounts)
        for one in amounts[:-1]:
            store.caps.take(COUNTER, UNTIL, one)
    with unit() as store:
        assert store.caps.amount(COUNTER, NOW).total == amounts[-1]


def test_the_reservations_of_a_hold_are_kept_and_dropped(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.caps.reserved("apr_1") is None
        store.caps.keep_reserved("apr_1", "[]", int(NOW) + 60)
        assert store.caps.reserved("apr_1") == "[]"
    with unit() as store:
        assert store.caps.reserved("apr_1") == "[]"
        store.caps.drop_reserved("apr_1")
        assert store.caps.reserved("apr_1") is None
    with unit() as store:
        assert store.caps.reserved("apr_1") is None


def test_a_cap_lists_its_subjects_and_takes_no_new_one_beyond_its_bound(
    unit: UnitOfStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (caps, cap_rows):
        monkeypatch.setattr(module, "MAX_SUBJECTS", 2)
    monkeypatch.setattr("notary.backends.redis.caps.MAX_SUBJECTS", 2)
    for name in ("b", "a"):
        with unit() as store:
            one = COUNTER._replace(subject=name)
            assert store.caps.has_room(one, NOW)
            for until in (UNTIL, UNTIL + 60):
                store.caps.add(one, until, 1)
    with unit() as store:
        assert store.caps.subjects(COUNTER, NOW, None, 3) == ["a", "b"]
        assert store.caps.subjects(COUNTER, NOW, "a", 3) == ["b"]
        assert store.caps.subjects(COUNTER, NOW, None, 1) == ["a"]
        assert not store.caps.has_room(COUNTER, NOW)
        assert store.caps.has_room(COUNTER._replace(subject="a"), NOW)
        assert store.caps.has_room(COUNTER._replace(pointer="/other"), NOW)


def test_steps_that_count_no_more_are_forgotten(unit: UnitOfStore) -> None:
    with unit() as store:
        if not isinstance(store.caps, cap_rows.SqliteCaps):
            return  # Redis forgets keys by itself
        store.caps.add(COUNTER, UNTIL, 1)
        store.caps.keep_reserved("apr_1", "[]", UNTIL)
        over = gone_at(COUNTER, UNTIL) + caps.KEPT_SECONDS
        assert not store.caps.sweep(over - 1)
        assert store.caps.amount(COUNTER, NOW).total == 1
        assert store.caps.reserved("apr_1") is None
        store.caps.sweep(over)
        assert store.caps.amount(COUNTER, NOW) == NOTHING
