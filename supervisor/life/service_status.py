"""Reports to the service manager: readiness, a status line each second, reloads, the end.

Guarantees that READY=1 is sent only at the first readiness and after a reload, and that a slow start or stop is not
taken for a hanging one: each has deadlines of its own (supervisor/keepers/fronts.py, supervisor/life/stop.py), and more
time is asked for while it runs. This module decides nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from ipc.messages.control import FrontStatus
from supervisor.lifecycle import shown
from supervisor.state import SupervisorState
from supervisor.systemd.status_line import ServingSummary, status_line

TELL_SECONDS = 1.0
EXTEND_SECONDS = 10.0
"""More than one look away: a manager is asked for more time long before it has run out."""


class Telling:
    """Tells one service manager; without one, nothing."""

    def __init__(
        self, state: SupervisorState, answering: Callable[[], int], statuses: Callable[[], list[FrontStatus]],
        is_reload_failed: Callable[[], bool],
    ) -> None:  # fmt: skip
        """`answering()`: how many fronts serve; `statuses()`: what they said last; `is_reload_failed()`: the last
        reload changed nothing."""
        self._answering = answering
        self._state = state
        self._notifier = state.notifier
        self._statuses = statuses
        self._is_reload_failed = is_reload_failed
        self._said = ""
        self._is_ready = False

    async def run(self) -> None:
        """Say once a second how the gateway stands, and at once when it begins to leave."""
        if not self._notifier.is_heard:
            return
        while not self._state.is_leaving:
            self.tell()
            with trio.move_on_after(TELL_SECONDS):
                await self._state.condition.until(lambda: self._state.is_leaving)
        self._notifier.stopping()
        while True:
            self.tell()
            await trio.sleep(TELL_SECONDS)

    def ready(self) -> None:
        """The gateway serves."""
        self._is_ready = True
        self.tell()
        self._notifier.ready()

    @contextmanager
    def reload(self) -> Iterator[None]:
        """Around a reload."""
        is_told = self._is_ready and self._state.lifecycle.may_replace and not self._state.is_leaving
        if is_told:
            self._notifier.reloading()
        try:
            yield
        finally:
            if is_told:
                self.tell()
                self._notifier.ready()

    def tell(self) -> None:
        """Say how the gateway stands, unless that was said."""
        state = self._state
        if state.is_leaving or state.lifecycle.is_starting:
            self._notifier.extend(EXTEND_SECONDS)
        left = None if state.last_call_at is None else state.last_call_at - trio.current_time()
        standing = ServingSummary(
            shown(state.lifecycle.state, self._answering()), state.settings.front_processes, self._statuses(), left,
            self._is_reload_failed(),
        )  # fmt: skip
        line = status_line(standing)
        if line != self._said:
            self._said = line
            self._notifier.status(line)
