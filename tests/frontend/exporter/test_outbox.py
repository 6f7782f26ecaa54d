"""Calls that wait for the exporter: a bound, and equal parts of it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from frontend.exporter.outbox import CallOutbox
from ipc.messages.exporting import ExportedCall


def call(principal: str, number: int = 0) -> ExportedCall:
    return ExportedCall("trc_", 0, 0, principal, str(number), "echo", "allow")


def test_a_flood_of_one_principal_takes_no_room_of_another() -> None:
    waiting = CallOutbox(10)
    for number in range(100):
        waiting.add(call("flood", number))
    lost = [waiting.add(call("polite", number)) for number in range(5)]
    assert {one.principal for one in lost if one is not None} == {"flood"}
    assert Counter(one.principal for one in waiting.take(100)) == {"flood": 5, "polite": 5}


def test_principals_take_turns_in_a_batch() -> None:
    waiting = CallOutbox(10)
    for number in range(5):
        waiting.add(call("flood", number))
    waiting.add(call("polite"))
    assert [one.principal for one in waiting.take(3)] == ["flood", "polite", "flood"]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 3))))
def test_calls_are_kept_taken_or_lost_and_never_more_than_the_bound(steps: list[tuple[str, int]]) -> None:
    waiting, lost, taken = CallOutbox(4), 0, 0
    for added, (principal, takes) in enumerate(steps, 1):
        lost += waiting.add(call(principal)) is not None
        taken += len(waiting.take(takes))
        assert len(waiting) == added - lost - taken <= 4
