"""The room that one cap has for new subjects: counted seldom, and never thought larger than it is."""

from typing import Any

import pytest

from notary.store.cap_room import FULL_SECONDS, CapRoom
from notary.store.cap_rows import SqliteCaps
from tests.notary.operations.test_caps import asked, use, used
from tests.notary.running import Running
from tests.notary.samples import NOW

CAP, OTHER = ("a", "/amount", "principal", 60), ("a", "/amount", "owner", 60)


class Counted:
    """So much room is there, and so often was it counted."""

    def __init__(self, room: int) -> None:
        self.room, self.times = room, 0

    def __call__(self) -> int:
        self.times += 1
        return self.room


def test_subjects_are_counted_once_for_all_that_still_fit() -> None:
    room, counted = CapRoom(), Counted(3)
    assert [room.takes_one(CAP, NOW, counted) for _ in range(3)] == [True, True, True]
    assert counted.times == 1
    counted.room = 0
    assert not room.takes_one(CAP, NOW, counted)
    assert room.takes_one(OTHER, NOW, Counted(1)), "another cap has room of its own"


@pytest.mark.parametrize("later", [FULL_SECONDS, -3600.0])
def test_a_full_cap_is_counted_again_after_its_time_and_for_a_clock_that_was_set_back(later: float) -> None:
    room, counted = CapRoom(), Counted(0)
    assert not room.takes_one(CAP, NOW, counted)
    counted.room = 1
    assert not room.takes_one(CAP, NOW + FULL_SECONDS / 2, counted)
    assert counted.times == 1
    assert room.takes_one(CAP, NOW + later, counted)


def test_a_notary_walks_the_subjects_of_a_cap_for_the_first_new_one_alone(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks, walk = list[Any](), SqliteCaps.subjects

    def counting(self: SqliteCaps, *given: Any) -> list[str]:
        walks.append(given)
        return walk(self, *given)

    monkeypatch.setattr(SqliteCaps, "subjects", counting)
    for number in range(5):
        notary.front.ask(asked(use(subject=f"uid:{number}")))
    assert len(walks) == 1
    assert len(used(notary)) == 5
