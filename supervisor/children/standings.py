"""How each child stands: its state, its present process, how often it ended, and its last error.

Owns what readiness, `gateway ps` and SIGUSR1 tell of children. Says when a child enters or leaves a crash loop, once,
in the log and to `on_change`. Starts and ends nothing. Times are seconds of a monotonic clock.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.children import child_states
from supervisor.logs import log


def _nothing() -> None:
    """No listener is set yet."""


@dataclass
class ChildStanding:
    """One child over all its processes: `front 1`, `notary`, `worker http`."""

    name: str
    state: str = child_states.WAITING
    pid: int = 0
    """The pid of the present process; 0 while none runs, and for a kind with several processes."""
    ends: int = 0
    """Unexpected ends so far."""
    last_error: str = ""
    last_error_at: float = 0.0
    is_storm: bool = False
    """It had served each time, and ended too often all the same."""

    @property
    def is_failing(self) -> bool:
        """Whether it makes readiness fail."""
        return self.state in child_states.FAILING


class Standings:
    """All children by name, in the order in which they first started."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.on_change: Callable[[], None] = _nothing
        """Called whenever a crash loop began or ended."""
        self.all: dict[str, ChildStanding] = {}
        self._clock = clock

    @property
    def crash_loops(self) -> tuple[str, ...]:
        """Names of the children that make readiness fail."""
        return tuple(one.name for one in self.all.values() if one.is_failing)

    def started(self, name: str, pid: int = 0) -> None:
        """A process of this child began."""
        one = self.all.setdefault(name, ChildStanding(name))
        one.pid = pid
        self._move(one, "start")

    def serves(self, name: str) -> None:
        """It does its work."""
        one = self.all[name]
        self._move(one, "prove" if one.is_storm else "serve")

    def healthy(self, name: str) -> None:
        """It has served for a whole minute."""
        one = self.all[name]
        one.is_storm = False
        self._move(one, "healthy")

    def ended(self, name: str, error: str, *, is_loop: bool, is_storm: bool) -> None:
        """Its process has ended. `is_loop`: it has ended too often by now, for any reason; `is_storm`: it had served
        before."""
        one = self.all[name]
        one.pid, one.is_storm = 0, is_storm
        one.ends += 1
        one.last_error, one.last_error_at = error, self._clock()
        self._move(one, "end")
        if is_loop:
            self._move(one, "loop")

    def stopped(self, name: str) -> None:
        """Its process is ended because it is not needed any more: no fault."""
        self.all[name].pid = 0
        self._move(self.all[name], "end")

    def worker_ended(self, name: str, error: str, *, is_loop: bool, is_storm: bool) -> None:
        """One of several processes of this child ended by a fault; others may serve, which only a loop denies."""
        one = self.all.setdefault(name, ChildStanding(name, child_states.SERVING))
        one.ends += 1
        one.last_error, one.last_error_at = error, self._clock()
        if is_loop and not one.is_failing:
            one.is_storm = is_storm
            for event in ("end", "loop", "start"):
                self._move(one, event)

    def worker_serves(self, name: str) -> None:
        """One of several processes works; that ends a loop of others that never did."""
        one = self.all.setdefault(name, ChildStanding(name, child_states.SERVING))
        if one.state == child_states.RETRYING:
            self._move(one, "serve")

    def ago(self, one: ChildStanding) -> float:
        """Seconds since its last error."""
        return self._clock() - one.last_error_at

    def _move(self, one: ChildStanding, event: str) -> None:
        was_failing = one.is_failing
        one.state = child_states.after(one.state, event)
        if one.is_failing == was_failing:
            return
        if one.is_failing:
            log.error(
                f"readiness fails: {one.name} is in a crash loop", ends=one.ends, last_error=one.last_error
            )  # fmt: skip
        else:
            log.info(f"{one.name} has left its crash loop", ends=one.ends)
        self.on_change()
