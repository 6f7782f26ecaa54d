"""Turns by what was used: counted under a given order, with costs that the test names."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.limits.turns import Turn, Turns
from ipc.channel.fair_queue import CREDIT


class Callers:
    """Callers who wish for another turn as soon as one is over; `costs` is what each uses in one."""

    def __init__(self, costs: dict[str, float], sessions: int = 1) -> None:
        self.turns = Turns()
        self.costs = costs
        self.used: Counter[str] = Counter()
        self.order: list[str] = []
        self._wishes: list[tuple[str, Turn]] = []
        for name in costs:
            for session in range(sessions):
                self.wish(name, session)

    def wish(self, name: str, session: int = 0) -> None:
        self._wishes.append((name, self.turns.enter((f"principal {name}", f"session {name} {session}"))))

    def step(self, *, is_last: bool = False) -> str:
        ((name, turn),) = [one for one in self._wishes if one[1].has_come.is_set()]
        self._wishes.remove((name, turn))
        self.used[name] += self.costs[name]  # type: ignore[assignment]
        self.order.append(name)
        if not is_last:
            self._wishes.append((name, self.turns.enter(turn.owners)))
        self.turns.leave(turn, self.costs[name])
        return name


def test_callers_with_equal_costs_take_turns() -> None:
    callers = Callers({"a": 1.0, "b": 1.0, "c": 1.0})
    assert [callers.step() for _ in range(9)] == ["a", "b", "c"] * 3


def test_one_whose_turns_cost_ten_times_as_much_gets_a_tenth_of_them() -> None:
    callers = Callers({"cheap": 1.0, "dear": 10.0})
    for _ in range(220):
        callers.step()
    assert Counter(callers.order) == {"cheap": 200, "dear": 20}


@pytest.mark.parametrize("sessions", [1, 6])
def test_a_principal_gets_no_more_for_having_more_sessions(sessions: int) -> None:
    callers = Callers({"many": 1.0}, sessions)
    callers.costs["one"] = 1.0
    callers.wish("one")
    for _ in range(100):
        callers.step()
    assert abs(callers.order.count("one") - 50) <= 1


def test_a_newcomer_waits_for_the_one_at_work_alone_and_has_saved_nothing_up() -> None:
    callers = Callers({f"busy-{number}": 1.0 for number in range(6)})
    for _ in range(60):
        callers.step()
    callers.costs["new"] = 1.0
    callers.wish("new")
    callers.step()
    assert callers.step() == "new"
    for _ in range(70):
        callers.step()
    assert abs(callers.order[62:].count("new") - 10) <= 1


def test_a_newcomer_is_served_for_as_long_as_one_turn_of_another_and_50_ms_and_then_waits() -> None:
    callers = Callers({"busy": 0.2})
    callers.step()
    callers.costs["new"] = 0.02
    callers.wish("new")
    while callers.order.count("busy") < 3:
        callers.step()
    assert callers.order[:2] == ["busy", "busy"]
    assert 0.2 <= callers.used["new"] <= 0.2 + 0.05 + 0.02


def test_those_who_came_once_are_forgotten_while_others_go_on() -> None:
    callers = Callers({"a": 1.0, "b": 1.0})
    for number in range(100):
        once = callers.turns.enter((f"principal {number}", f"session {number}"))
        while not once.has_come.is_set():
            callers.step()
        callers.turns.leave(once, 0.01)
    assert len(callers.turns) <= 8


def test_one_that_does_not_wait_any_more_is_charged_nothing_and_gets_no_turn() -> None:
    turns = Turns()
    first, second, third = (turns.enter((name,)) for name in "abc")
    turns.leave(second, 0.0)
    turns.leave(first, 1.0)
    assert (second.has_come.is_set(), third.has_come.is_set()) == (False, True)


def test_nothing_is_remembered_once_nobody_waits() -> None:
    callers = Callers({"a": 1.0, "b": 5.0})
    for _ in range(4):
        callers.step()
    callers.step(is_last=True)
    callers.step(is_last=True)
    assert len(callers.turns) == 0


@given(st.lists(st.floats(0.001, 10.0), min_size=2, max_size=6))
def test_nobody_who_always_wishes_gets_less_than_another_by_more_than_two_turns(costs: list[float]) -> None:
    callers = Callers({str(number): cost for number, cost in enumerate(costs)})
    for _ in range(100):
        callers.step()
    used = [callers.used[name] for name in callers.costs]
    assert max(used) - min(used) <= 2 * max(costs) + 2 * CREDIT
