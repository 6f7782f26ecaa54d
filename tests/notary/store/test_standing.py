"""Standing approvals and their counts, once in the ledger and once in a real Redis."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from msgspec.structs import replace

from ipc.operations.standing import StandingRow
from notary.store.contract import Store
from tests.notary.samples import NOW

UnitOfStore = Callable[[], AbstractContextManager[Store]]
END = int(NOW) + 600
ROW = StandingRow("sta_1", "refund", "uid:1000", END, 0, "ann", "2026-09-21T00:00:00.000Z", "a.b.c")


def test_a_row_is_found_by_its_call_and_by_its_id_until_it_is_forgotten(unit: UnitOfStore) -> None:
    early = replace(ROW, standing_id="sta_2", until=END - 1)
    other = replace(ROW, standing_id="sta_3", principal="uid:1")
    with unit() as store:
        assert store.standing.get("sta_1") is None
        for row in (ROW, early, other):
            store.standing.put(row)
        assert store.standing.of_call("refund", "uid:1000") == [early, ROW]
    with unit() as store:
        assert store.standing.of_call("refund", "uid:1000") == [early, ROW]
        assert store.standing.of_call("refund", "uid:1") == [other]
        assert store.standing.of_call("other", "uid:1000") == []
        assert store.standing.listed() == [early, ROW, other]
        store.standing.put(replace(ROW, is_ended=True))
        store.standing.forget(early)
        assert store.standing.listed() == [replace(ROW, is_ended=True), other]
    with unit() as store:
        assert store.standing.get("sta_1") == replace(ROW, is_ended=True)
        assert store.standing.get("sta_2") is None


def test_calls_are_counted_and_given_back_down_to_none(unit: UnitOfStore) -> None:
    with unit() as store:
        store.standing.put(ROW)
        store.standing.count("sta_1")
        store.standing.count("sta_1")
        assert store.standing.calls("sta_1") == 2
    with unit() as store:
        assert store.standing.calls("sta_1") == 2
        store.standing.put(replace(ROW, is_ended=True))
        for _ in range(3):
            store.standing.uncount("sta_1")
        store.standing.uncount("sta_2")
        assert store.standing.calls("sta_1") == 0
    with unit() as store:
        assert store.standing.calls("sta_1") == 0
        assert store.standing.calls("sta_2") == 0


def test_those_are_due_whose_time_is_over(unit: UnitOfStore) -> None:
    with unit() as store:
        store.standing.put(ROW)
        store.standing.put(replace(ROW, standing_id="sta_2", until=END + 1))
    with unit() as store:
        assert store.standing.due(END - 1) == []
        assert store.standing.due(END) == ["sta_1"]


def test_a_row_that_is_put_again_is_due_at_its_new_end(unit: UnitOfStore) -> None:
    with unit() as store:
        store.standing.put(ROW)
    with unit() as store:
        store.standing.put(replace(ROW, is_ended=True, until=END - 60))
    with unit() as store:
        assert store.standing.due(END - 61) == []
        assert store.standing.due(END - 60) == ["sta_1"]
