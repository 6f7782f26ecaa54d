"""Turns of users at the event loop: how many requests of one user begin while the loop runs its tasks once.

The loop runs every task that is ready before it looks at sockets again, and a call needs several such passes. So a
pass is as long as the requests in it: a user with hundreds of connections would make each pass of another user's call
that long. A pass therefore begins SHARED requests of a user while requests of several users come, and ALONE otherwise;
the rest waits, in order, and no user waits for another one's queue.
Costs a request of a lone user a few look-ups. Never refuses: at most one request of each connection waits.
"""

import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

import trio

ALONE: Final = 32
"""Requests that begin in one pass while one user sends all of them."""
SHARED: Final = 4
"""Requests of each user that begin in one pass while several send some. With 1, a user with 16 connections beside one
with a single connection made a quarter fewer calls: fewer of them shared a flush of the notary's. With 4, no fewer."""
SHARED_SECONDS: Final = 0.25
"""Users share the loop for so long after the last request that another user than the one before sent."""


class RequestTurns(trio.abc.Instrument):
    """Turns of one server's users; an instrument of its loop. `clock` is in seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[Hashable, int] = {}
        """Requests of each user in this pass."""
        self._woken: dict[Hashable, int] = {}
        """Those of the next pass, which begin in it for certain."""
        self._waiting: dict[Hashable, deque[trio.lowlevel.Task]] = {}
        self._is_giving = False
        self._latest: Hashable = None
        self._shared_until = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """The next pass begins."""
        self._begun, self._woken = self._woken, {}

    async def begin(self, user: Hashable) -> None:
        """Return when a request of this user may begin: at once, without a checkpoint, as long as few have."""
        if user != self._latest:
            self._shared_until = self._shared_until if self._latest is None else self._clock() + SHARED_SECONDS
            self._latest = user
        begun = self._begun.get(user, 0)
        if user not in self._waiting and (begun < SHARED or begun < self._most()):
            self._begun[user] = begun + 1
            return
        if not self._is_giving:
            self._is_giving = True
            trio.lowlevel.spawn_system_task(self._give_turns, name="turns of requests")
        self._waiting.setdefault(user, deque()).append(task := trio.lowlevel.current_task())

        def give_up(_: object) -> trio.lowlevel.Abort:
            self._leave(user, task)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(give_up)

    def _most(self) -> int:
        return SHARED if self._clock() < self._shared_until else ALONE

    async def _give_turns(self) -> None:
        """Once a pass, wake those whose requests begin in the next one. Ends when none waits."""
        while self._waiting:
            most = self._most()
            for user, tasks in list(self._waiting.items()):
                self._woken[user] = min(most, len(tasks))
                for _ in range(self._woken[user]):
                    trio.lowlevel.reschedule(tasks.popleft())
                if not tasks:
                    del self._waiting[user]
            await trio.lowlevel.cancel_shielded_checkpoint()
        self._is_giving = False

    def _leave(self, user: Hashable, task: trio.lowlevel.Task) -> None:
        tasks = self._waiting[user]
        tasks.remove(task)
        if not tasks:
            del self._waiting[user]
