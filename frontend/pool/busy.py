"""The workers of one pool that have calls, and which of them can be given one more.

Those that run calls beside each other are kept by the action of these calls, so that a look passes no others.
"""

from frontend.pool.channel import WorkerChannel
from frontend.pool.waiting import Want
from ipc.limits import MAX_AHEAD


class BusyWorkers:
    """`begin` a worker with the first call that finds it idle, `end` it when it has no call left."""

    def __init__(self) -> None:
        self._by_action: dict[str, dict[WorkerChannel, Want]] = {}
        """With the want of the first call. Workers that run one call at a time stand under an empty name."""
        self._generation = 0

    @property
    def alone(self) -> int:
        """Workers that run one call at a time."""
        return len(self._by_action.get("", ()))

    @property
    def brief(self) -> int:
        """Those of them whose calls are all expected to end in a moment."""
        return sum(one.is_brief for one in self._by_action.get("", ()))

    def begin(self, channel: WorkerChannel, want: Want) -> None:
        """A worker has its first call."""
        channel.action = want.action if want.is_shared else ""
        self._by_action.setdefault(channel.action, {})[channel] = want

    def end(self, channel: WorkerChannel) -> Want:
        """A worker has no call left. Returns what the first one wanted."""
        workers = self._by_action[channel.action]
        first = workers.pop(channel)
        if not workers:
            del self._by_action[channel.action]
        return first

    def require_generation(self, generation: int) -> None:
        """Workers that have seen fewer module loads have no room any more."""
        self._generation = generation

    def fullest(self, action: str) -> WorkerChannel | None:
        """The worker with the most calls of this action beside each other that has room: others come free sooner."""
        workers = self._by_action.get(action, ())
        return max((one for one in workers if self._has_room(one)), key=_users, default=None)

    def emptiest(self, *, is_brief: bool = False) -> WorkerChannel | None:
        """The worker with the fewest calls that takes one more behind them. `is_brief`: its calls are all brief."""
        found, fewest = None, MAX_AHEAD
        for one in self._by_action.get("", ()):
            may_wait = one.is_shared and (one.is_brief or not is_brief)
            if may_wait and one.users < fewest and self._has_room(one):
                found, fewest = one, one.users
        return found

    def _has_room(self, one: WorkerChannel) -> bool:
        return (
            one.users < MAX_AHEAD
            and not one.is_slow
            and not one.is_leaving
            and not one.is_abandoned
            and one.lost is None
            and one.attached.generation >= self._generation
        )


def _users(channel: WorkerChannel) -> int:
    return channel.users
