"""Bytes of bodies that one front holds, by principal and by session."""

import pytest

from frontend.limits.body_bytes import FEWEST, OF_A_PLACE, SMALL, BodyBytes
from frontend.limits.turns import Owners

MEGABYTE = 1 << 20


def owners(principal: str, number: int = 0) -> Owners:
    return principal, f"{principal}'s session {number}"


def taken(bodies: BodyBytes, principal: str, size: int = MEGABYTE) -> int:
    count = 0
    while bodies.take(owners(principal, count), size) is None:
        count += 1
    return count


@pytest.mark.parametrize(
    ("places", "fronts", "most"), [(1, 1, 8), (32, 1, 8), (256, 1, 64), (256, 4, 16), (256, 64, 8)]
)
def test_each_place_brings_a_quarter_of_the_largest_body_and_a_front_has_room_for_eight(
    places: int, fronts: int, most: int
) -> None:
    bodies = BodyBytes(places, fronts)
    held = sum(taken(bodies, f"principal {number}") for number in range(20))
    assert held == most == max(FEWEST, OF_A_PLACE * places // fronts) // MEGABYTE
    assert bodies.take(owners("newcomer"), MEGABYTE) == "ceiling"


def test_one_principal_has_three_quarters_and_the_last_eighth_is_for_those_that_hold_none() -> None:
    bodies = BodyBytes(256)
    assert taken(bodies, "greedy") == 48
    assert bodies.take(owners("greedy"), MEGABYTE) == "share"
    assert bodies.take(owners("newcomer"), MEGABYTE) is None


def test_two_principals_leave_the_last_eighth_to_a_third() -> None:
    bodies = BodyBytes(256)
    assert [taken(bodies, "first"), taken(bodies, "second")] == [48, 7]
    assert taken(bodies, "third", 8 * MEGABYTE) == 1


def test_small_bodies_are_not_counted() -> None:
    bodies = BodyBytes(1)
    assert [bodies.take(owners("p"), SMALL) for _ in range(5000)] == [None] * 5000
    assert taken(bodies, "q") == 6


def test_what_was_given_back_is_there_again() -> None:
    bodies = BodyBytes(1)
    for _ in range(3):
        assert taken(bodies, "p") == 6
        for number in range(6):
            bodies.give_back(owners("p", number), MEGABYTE)
        bodies.give_back(owners("p"), SMALL)
    assert not bodies._held, "nothing is remembered of a principal that holds none"


def test_a_session_leaves_room_for_the_other_sessions_of_its_principal() -> None:
    bodies = BodyBytes(256)
    count = 0
    while bodies.take(owners("p"), MEGABYTE) is None:
        count += 1
    assert count == 43
    assert bodies.take(owners("p", 1), MEGABYTE) is None


def test_a_body_in_chunks_counts_with_its_own_length_once_it_is_here() -> None:
    bodies = BodyBytes(1)
    for number in range(50):
        assert bodies.take(owners("p", number), MEGABYTE) is None
        bodies.settle(owners("p", number), MEGABYTE, SMALL)
    bodies.take(owners("p"), MEGABYTE)
    bodies.settle(owners("p"), MEGABYTE, SMALL + 1)
    bodies.give_back(owners("p"), SMALL + 1)
    assert not bodies._held
