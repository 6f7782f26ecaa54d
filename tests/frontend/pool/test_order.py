"""Turns go round among callers, whatever each of them asks for."""

from hypothesis import given
from hypothesis import strategies as st

from frontend.pool.order import ServiceOrder


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=60))
def test_nobody_is_served_twice_while_somebody_waits_who_was_not_served_in_between(
    calls: list[tuple[int, int]],
) -> None:
    turns = ServiceOrder()
    waiting = [(f"principal {principal}", f"session {principal}.{session}") for principal, session in calls]
    for owners in waiting:
        turns.begin(owners)
    order: list[tuple[str, str]] = []
    while waiting:
        owners = min(waiting, key=turns.last)
        waiting.remove(owners)
        turns.serve(owners)
        turns.end(owners)
        order.append(owners)
    for place, owners in enumerate(order):
        for level in (0, 1):
            before = [one for one in order[:place] if level == 0 or one[0] == owners[0]]
            behind = {one[level] for one in order[place:] if level == 0 or one[0] == owners[0]}
            since = {one[level] for one in before[-(len(behind) - 1) :]} if len(behind) > 1 else set()
            assert owners[level] not in since, "everybody else who waits had a turn since"
    assert len(turns) == 0


def test_a_call_that_gives_up_and_one_that_was_served_leave_nothing() -> None:
    turns = ServiceOrder()
    turns.begin(("a", "b"))
    turns.begin(("a", "c"))
    turns.end(("a", "b"))
    assert len(turns) == 2
    turns.serve(("a", "c"))
    assert turns.last(("a", "b", "c")) == [1, 0, 1]
    turns.end(("a", "c"))
    assert (len(turns), turns.last(("a",))) == (0, [0])
    turns.begin(())
    turns.serve(())
    turns.end(())
    assert len(turns) == 0


def test_turns_are_remembered_while_another_call_of_the_same_owner_is_served() -> None:
    turns = ServiceOrder()
    for owners in (("a", "b"), ("a", "b")):
        turns.begin(owners)
        turns.serve(owners)
    turns.end(("a", "b"))
    assert turns.last(("a", "b")) == [2, 2]
    turns.end(("a", "b"))
    assert len(turns) == 0
