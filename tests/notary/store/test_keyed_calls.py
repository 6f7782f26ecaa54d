"""Keys of calls with their ends and outputs, and standing approvals: one suite for ledger and Redis."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipc.operations.standing import StandingRow
from notary.backends.redis.changes import Outdated
from notary.store.call_keys import OUTPUT_BYTES_OF_PRINCIPAL, KeyedCall, KeyedEnd, name_of
from notary.store.keeping import KEEP_ENDED_SECONDS
from tests.notary.samples import NOW
from tests.notary.store.conftest import UnitOfStore

CALL = KeyedCall("intent_1", "trc_1", "sha256:1", NOW + 90, NOW + 1000)


@given(st.lists(st.text(min_size=1), min_size=6, max_size=6))
def test_two_calls_share_a_name_only_if_principal_action_and_key_are_the_same(texts: list[str]) -> None:
    one, other = tuple(texts[:3]), tuple(texts[3:])
    assert (name_of(*one) == name_of(*other)) == (one == other)


def test_a_key_has_the_call_that_it_was_given_last(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.keyed.of_key("a") is None
        store.keyed.give_key("a", "p", CALL)
        assert store.keyed.of_key("a") == CALL
    later = KeyedCall("intent_2", "trc_2", "sha256:1", NOW + 90, NOW + 1000)
    with unit() as store:
        assert store.keyed.of_key("a") == CALL
        store.keyed.give_key("a", "p", later)
    with unit() as store:
        assert store.keyed.of_key("a") == later
        assert store.keyed.of_key("b") is None


def test_keys_are_counted_by_principal(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.keyed.keys_of("p", NOW) == 0
        store.keyed.give_key("a", "p", CALL)
        store.keyed.give_key("a", "p", CALL)
        store.keyed.give_key("b", "p", CALL)
        assert store.keyed.keys_of("p", NOW) == 2
    with unit() as store:
        store.keyed.give_key("c", "q", CALL)
    with unit() as store:
        assert (store.keyed.keys_of("p", NOW), store.keyed.keys_of("q", NOW)) == (2, 1)


def test_an_end_is_kept_by_the_id_of_its_call(unit: UnitOfStore) -> None:
    ended = KeyedEnd(has_happened=True, trace_id="trc_1")
    with unit() as store:
        assert store.keyed.end_of("intent_1") is None
        store.keyed.end("intent_1", ended, NOW + 1000)
        assert store.keyed.end_of("intent_1") == ended
    with unit() as store:
        assert store.keyed.end_of("intent_1") == ended
        store.keyed.end("intent_1", KeyedEnd(), NOW + 1000)
    with unit() as store:
        assert store.keyed.end_of("intent_1") == KeyedEnd()


def test_the_oldest_outputs_of_a_principal_are_erased_first(unit: UnitOfStore) -> None:
    half = "x" * (OUTPUT_BYTES_OF_PRINCIPAL // 2)
    for number in range(3):
        with unit() as store:
            store.keyed.keep_output(f"intent_{number}", "p", half, NOW + number)
    with unit() as store:
        store.keyed.keep_output("intent_9", "q", '"é"', NOW)
    with unit() as store:
        assert store.keyed.trim(NOW - 1) == 1
    with unit() as store:
        kept = [store.keyed.output_of(f"intent_{number}") for number in (0, 1, 2, 9)]
        assert [one and len(one) for one in kept] == [None, len(half), len(half), 3]
    with unit() as store:
        assert store.keyed.trim(NOW + 1) == 2
    with unit() as store:
        assert store.keyed.output_of("intent_2") is not None


def test_an_output_is_erased_by_the_id_of_its_call(unit: UnitOfStore) -> None:
    with unit() as store:
        store.keyed.keep_output("intent_1", "p", "{}", NOW)
        assert store.keyed.output_of("intent_1") == "{}"
    with unit() as store:
        assert store.keyed.output_of("intent_1") == "{}"
        store.keyed.erase_output("intent_1")
        store.keyed.erase_output("intent_none")
        assert store.keyed.output_of("intent_1") is None
    with unit() as store:
        assert store.keyed.output_of("intent_1") is None


def test_a_sweep_forgets_what_is_over_and_nothing_else(unit: UnitOfStore) -> None:
    over = KeyedCall("intent_0", "trc_0", "sha256:0", NOW - 9000, NOW - 100)
    with unit() as store:
        store.keyed.give_key("over", "p", over)
        store.keyed.end("intent_0", KeyedEnd(), NOW - 100)
        store.keyed.give_key("a", "p", CALL)
        store.keyed.end("intent_1", KeyedEnd(), NOW + 100)
    with unit() as store:
        store.sweep(NOW, NOW - KEEP_ENDED_SECONDS)
    with unit() as store:
        assert store.keyed.of_key("a") == CALL
        assert store.keyed.end_of("intent_1") == KeyedEnd()
        assert store.keyed.keys_of("p", NOW) == 1
    with suppress(Outdated), unit() as store:  # outdated where a server has forgotten it, by its own clock, meanwhile
        found = store.keyed.of_key("over")
        assert found is None or found.expires_at <= NOW


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
