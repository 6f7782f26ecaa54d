"""Room for answers that clients have not taken, by owner."""

import pytest
import trio
import trio.testing

from frontend.http.send_budget import BYTES_A_SECOND, GRACE_SECONDS, NoRoom, Owner, SendBudget, seconds_for

FLOOD, QUIET = ("client", 1001), ("client", 1002)


class Waiting:
    """Answers that are kept until they are let go; `cut` has the numbers of those that lost their room."""

    def __init__(self, unsent: SendBudget, nursery: trio.Nursery) -> None:
        self.unsent = unsent
        self.cut: list[int] = []
        self._nursery = nursery
        self._number = 0

    async def add(self, owner: Owner, size: int) -> None:
        """One more, after which those that it displaced have ended."""
        self._number += 1
        await self._nursery.start(self._keep, self._number, owner, size)
        await trio.testing.wait_all_tasks_blocked()

    async def _keep(self, number: int, owner: Owner, size: int, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        try:
            with self.unsent.kept(owner, size):
                await trio.sleep_forever()
        except NoRoom:
            self.cut.append(number)


async def test_a_user_over_its_share_loses_its_longest_waiting_connection() -> None:
    async with trio.open_nursery() as nursery:
        waiting = Waiting(SendBudget(100), nursery)
        for _ in range(7):
            await waiting.add(FLOOD, 10)
        assert (sorted(waiting.cut), waiting.unsent.size) == ([1, 2], 50)
        await waiting.add(QUIET, 20)
        await waiting.add(FLOOD, 10)
        assert sorted(waiting.cut) == [1, 2, 3, 4], "its part is half of what others leave"
        assert waiting.unsent.size == 20 + 40
        nursery.cancel_scope.cancel()
    assert waiting.unsent.size == 0


async def test_one_that_has_nothing_finds_room_as_long_as_there_is_some(nursery: trio.Nursery) -> None:
    waiting = Waiting(SendBudget(100), nursery)
    for uid in range(10):
        await waiting.add(("client", uid), 9)
    await waiting.add(("client", 10), 11)
    assert (waiting.cut, waiting.unsent.size) == ([11], 90)
    await waiting.add(("client", 11), 10)
    assert (waiting.cut, waiting.unsent.size) == ([11], 100)


async def test_an_answer_that_was_taken_gives_its_room_back() -> None:
    unsent = SendBudget(100)
    for _ in range(3):
        with unsent.kept(FLOOD, 100):
            assert unsent.size == 100
        assert unsent.size == 0
    with pytest.raises(NoRoom), unsent.kept(FLOOD, 101):
        pass


def test_a_client_has_a_while_and_a_second_for_so_many_bytes() -> None:
    assert seconds_for(0, 600.0) == GRACE_SECONDS
    assert seconds_for(10 * BYTES_A_SECOND, 600.0) == GRACE_SECONDS + 10
    assert seconds_for(1 << 40, 30.0) == 30.0
