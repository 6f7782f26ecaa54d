"""The life of the gateway as a table: starting, serving, draining, stopping, stopped. No I/O."""

from collections.abc import Mapping

STARTING = "starting"
SERVING = "serving"
DRAINING = "draining"
STOPPING = "stopping"
STOPPED = "stopped"
STALLED = "stalled"
"""Shown in the place of `serving` while no front answers; no state of the table."""

MOVES: Mapping[tuple[str, str], str] = {
    (STARTING, "ready"): SERVING,
    (STARTING, "drain"): DRAINING,
    (STARTING, "stop"): STOPPING,
    (SERVING, "drain"): DRAINING,
    (SERVING, "stop"): STOPPING,
    (DRAINING, "ready"): DRAINING,
    (DRAINING, "drain"): DRAINING,
    (DRAINING, "stop"): STOPPING,
    (STOPPING, "stop"): STOPPING,
    (STOPPING, "ended"): STOPPED,
}
"""(state, event) -> state. A drain that was asked for is never taken back; the way out is a restart."""


def shown(state: str, fronts: int) -> str:
    """The state as people and scripts see it: a gateway with no front that answers does not serve."""
    return STALLED if state == SERVING and fronts == 0 else state


class IllegalMove(Exception):
    """The table has no such move: an internal error."""


class Lifecycle:
    """Where the gateway is. Events: ready, drain, stop, ended."""

    def __init__(self) -> None:
        self.state = STARTING

    def move(self, event: str) -> bool:
        """Take one step. True when the state changed. Raises IllegalMove."""
        before = self.state
        try:
            self.state = MOVES[before, event]
        except KeyError:
            raise IllegalMove(f"{event} while {before}") from None
        return self.state != before

    @property
    def is_starting(self) -> bool:
        """True until the gateway has served for the first time."""
        return self.state == STARTING

    @property
    def is_draining(self) -> bool:
        """New work is refused."""
        return self.state == DRAINING

    @property
    def may_replace(self) -> bool:
        """Whether a process that ends gets a successor."""
        return self.state in (STARTING, SERVING, DRAINING)
