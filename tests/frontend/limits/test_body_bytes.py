"""Bytes of bodies that one front holds, by principal."""

import pytest

from frontend.limits.body_bytes import FEWEST, OF_A_PLACE, SMALL, BodyBytes

MEGABYTE = 1 << 20


def taken(bodies: BodyBytes, principal: str, size: int = MEGABYTE) -> int:
    """How many bodies of this size the principal may hold."""
    count = 0
    while bodies.take(principal, size) is None:
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
    assert bodies.take("newcomer", MEGABYTE) == "ceiling"


def test_one_principal_has_three_quarters_and_the_last_eighth_is_for_those_that_hold_none() -> None:
    bodies = BodyBytes(256)
    assert taken(bodies, "greedy") == 48
    assert bodies.take("greedy", MEGABYTE) == "share"
    assert bodies.take("newcomer", MEGABYTE) is None


def test_small_bodies_are_not_counted() -> None:
    bodies = BodyBytes(1)
    assert [bodies.take("p", SMALL) for _ in range(5000)] == [None] * 5000
    assert taken(bodies, "q") == 6


def test_what_was_given_back_is_there_again() -> None:
    bodies = BodyBytes(1)
    for _ in range(3):
        assert taken(bodies, "p") == 6
        for _ in range(6):
            bodies.give_back("p", MEGABYTE)
        bodies.give_back("p", SMALL)
    assert not bodies._held, "nothing is remembered of a principal that holds none"
