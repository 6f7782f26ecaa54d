"""The states of a child as a table, and which of them readiness looks at."""

import pytest

from supervisor.children.child_states import FAILING, MOVES, IllegalChildMove, after
from supervisor.children.standings import Standings

STATES = ("waiting", "starting", "serving", "looping", "retrying", "proving")
EVENTS = ("start", "serve", "prove", "end", "loop", "healthy")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", EVENTS)
def test_a_transition_that_the_table_lacks_is_illegal(state: str, event: str) -> None:
    if (state, event) in MOVES:
        assert after(state, event) in STATES
    else:
        with pytest.raises(IllegalChildMove):
            after(state, event)


def test_the_table_names_no_other_state_or_event_and_every_state_can_be_left() -> None:
    assert {state for state, _ in MOVES} | set(MOVES.values()) == set(STATES)
    assert {event for _, event in MOVES} == set(EVENTS)
    assert {state for (state, _), to in MOVES.items() if to != state} == set(STATES)


def test_a_crash_loop_is_left_by_service_alone() -> None:
    ways = {(state, event) for (state, event), to in MOVES.items() if state in FAILING and to not in FAILING}
    assert ways == {("retrying", "serve"), ("proving", "healthy")}


class Told(Standings):
    """Standings by the clock of the test, that note how often they told of a change."""

    def __init__(self) -> None:
        self.now, self.changes = 0.0, 0
        super().__init__(lambda: self.now)
        self.on_change = self.count

    def count(self) -> None:
        self.changes += 1

    def loops(self) -> list[str]:
        """The problems that readiness reports."""
        return list(self.crash_loops)

    def life(self, *, serves: bool, is_loop: bool = False, is_storm: bool = False) -> None:
        self.started("template", 7)
        if serves:
            self.serves("template")
        self.ended("template", "SIGKILL", is_loop=is_loop, is_storm=is_storm)


def test_a_child_that_never_came_up_fails_readiness_until_it_serves() -> None:
    told = Told()
    told.life(serves=False)
    told.life(serves=False)
    assert told.loops() == []
    told.life(serves=False, is_loop=True)
    assert told.loops() == ["template"]
    told.life(serves=False, is_loop=True)
    told.started("template", 8)
    assert (told.loops(), told.changes) == (["template"], 1)
    told.serves("template")
    assert (told.loops(), told.changes) == ([], 2)
    one = told.all["template"]
    told.now = 3.0
    assert (one.ends, one.pid, one.last_error, told.ago(one)) == (4, 8, "SIGKILL", 3.0)


def test_a_serving_child_that_died_repeatedly_fails_readiness_for_a_healthy_minute() -> None:
    told = Told()
    told.life(serves=True, is_loop=True, is_storm=True)
    told.started("template", 8)
    told.serves("template")
    assert told.loops() == ["template"]
    told.healthy("template")
    assert (told.loops(), told.changes) == ([], 2)


def test_an_intended_end_does_not_count_as_a_failure() -> None:
    told = Told()
    told.started("policy 1", 7)
    told.stopped("policy 1")
    told.started("policy 1", 8)
    assert (told.all["policy 1"].ends, told.all["policy 1"].pid) == (0, 8)


def test_workers_that_never_serve_fail_readiness_until_one_does() -> None:
    told = Told()
    told.worker_ended("worker http", "exit 1", is_loop=False, is_storm=False)
    assert told.loops() == []
    for _ in range(2):
        told.worker_ended("worker http", "exit 1", is_loop=True, is_storm=False)
    assert (told.loops(), told.all["worker http"].ends) == (["worker http"], 3)
    told.worker_serves("worker http")
    assert (told.loops(), told.changes) == ([], 2)
