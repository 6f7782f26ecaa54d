"""The life of the gateway as a table."""

import pytest

from supervisor.lifecycle import MOVES, IllegalMove, Lifecycle

STATES = ("starting", "serving", "draining", "stopping", "stopped")
EVENTS = ("ready", "drain", "stop", "ended")


def after(*events: str) -> Lifecycle:
    lifecycle = Lifecycle()
    for event in events:
        lifecycle.move(event)
    return lifecycle


def test_the_long_way_from_start_to_end() -> None:
    lifecycle = Lifecycle()
    seen = [lifecycle.state]
    for event in ("ready", "drain", "stop", "ended"):
        assert lifecycle.move(event)
        seen.append(lifecycle.state)
    assert seen == list(STATES)


def test_the_table_names_no_other_state_or_event_and_nothing_leaves_the_end() -> None:
    assert {state for state, _ in MOVES} | set(MOVES.values()) == set(STATES)
    assert {event for _, event in MOVES} == set(EVENTS)
    assert not [event for state, event in MOVES if state == "stopped"]


def test_no_move_goes_back() -> None:
    assert all(STATES.index(to) >= STATES.index(state) for (state, _), to in MOVES.items())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("event", EVENTS)
def test_a_transition_that_the_table_lacks_is_illegal(state: str, event: str) -> None:
    lifecycle = Lifecycle()
    lifecycle.state = state
    if (state, event) in MOVES:
        assert lifecycle.move(event) == (MOVES[state, event] != state)
    else:
        with pytest.raises(IllegalMove):
            lifecycle.move(event)


def test_a_drain_is_never_taken_back() -> None:
    lifecycle = after("drain", "ready", "drain")
    assert lifecycle.is_draining
    assert lifecycle.may_replace


def test_nothing_is_replaced_once_it_stops() -> None:
    assert not after("ready", "stop").may_replace
    assert after().is_starting
