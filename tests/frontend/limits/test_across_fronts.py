"""Several fronts admit what one would: rates, places and shares are those of the gateway."""

import pytest

from frontend.errors import GateError
from frontend.limits.admission import Admission
from frontend.limits.rates import PER_SECOND, TELL_SECONDS, Rates, SessionRates, TooMuch
from frontend.limits.sessions import SessionTable
from tests.frontend.limits.test_bucket import Clock
from tests.support.shared import views


@pytest.mark.parametrize(("name", "rate"), PER_SECOND.items())
def test_the_rate_of_a_class_is_drawn_through_all_fronts_together(name: str, rate: int) -> None:
    fronts = [Rates(memory=memory) for memory in views()]
    for front in fronts:
        front._buckets[name]._clock = Clock()
    for turn in range(rate):
        fronts[turn % 2].take(name, "one")
    for front in fronts:
        with pytest.raises(GateError, match="rate_limit_exceeded"):
            front.take(name, "one")


def test_a_session_has_its_rate_once_and_is_refused_with_one_event() -> None:
    clock = Clock()
    fronts = [SessionRates(4, sessions=SessionTable(memory, clock)) for memory in views()]
    for turn in range(4):
        fronts[turn % 2].take("ses")
    for front in fronts:
        with pytest.raises(TooMuch):
            front.take("ses")
    fronts[1].give_back("ses")
    fronts[0].take("ses")
    assert [front.refused("ses") for front in fronts] == [1, None]
    clock.now += TELL_SECONDS
    assert fronts[0].refused("ses") == 2


def test_the_ceiling_is_that_of_all_fronts() -> None:
    first, second = (Admission(3, memory=memory) for memory in views())
    places = [first.enter(), first.enter(), second.enter()]
    for front in (first, second):
        with pytest.raises(GateError, match="overloaded"):
            front.enter()
    assert [front.in_flight_everywhere for front in (first, second)] == [3, 3]
    first.release(places[0])
    second.release(second.enter())
    assert (first.in_flight, second.in_flight, second.in_flight_everywhere) == (1, 1, 2)


def test_a_caller_s_part_of_the_places_is_that_of_all_fronts() -> None:
    alone, (first, second) = Admission(64), [Admission(64, memory=memory) for memory in views()]

    def held(*fronts: Admission) -> int:
        count = 0
        while True:
            place = fronts[count % len(fronts)].enter()
            try:
                place.belongs_to("ann", "ses")
            except TooMuch:
                place.leave_unless_owned()
                return count
            count += 1

    most = held(alone)
    assert held(first, second) == most
    for front in (first, second):
        front.enter().belongs_to("ben", "another")


def test_places_that_are_left_are_free_in_all_fronts() -> None:
    first, second = (Admission(8, memory=memory) for memory in views())
    for _ in range(3):
        places = []
        for front in (first, second) * 2:
            places.append((front, front.enter()))
            places[-1][1].belongs_to("ann", "ses")
        for front, place in places:
            front.release(place)
    assert second._peers.held_elsewhere("principal ann") == 0
    assert second.in_flight_everywhere == 0
