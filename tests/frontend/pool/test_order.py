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
        turns.serve("worker", owners)
        turns.end("worker")
        order.append(owners)
    for place, owners in enumerate(order):
        for level in (0, 1):
            before = [one for one in order[:place] if level == 0 or one[0] == owners[0]]
            behind = {one[level] for one in order[place:] if level == 0 or one[0] == owners[0]}
            since = {one[level] for one in before[-(len(behind) - 1) :]} if len(behind) > 1 else set()
            assert owners[level] not in since, "everybody else who waits had a turn since"
    assert len(turns) == 0


def test_a_call_that_gives_up_and_a_worker_that_served_nobody_leave_nothing() -> None:
    turns = ServiceOrder()
    turns.begin(("a", "b"))
    turns.begin(("a", "c"))
    turns.give_up(("a", "b"))
    turns.end("nobody")
    assert len(turns) == 2
    turns.serve("w", ("a", "c"))
    assert turns.last(("a", "b", "c")) == [1, 0, 1]
    turns.end("w")
    assert (len(turns), turns.last(("a",))) == (0, [0])
    turns.begin(())
    turns.serve("w", ())
    turns.end("w")
    assert len(turns) == 0
