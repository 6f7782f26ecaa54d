"""The operator's list of approvals: filtered, newest first, and, where that is asked for, principals in turns.

Reads no body. Functions of a connection inside a transaction that is open.
"""

import heapq
from collections.abc import Iterator
from itertools import islice

from ipc.backends.store import ApprovalRecord
from ipc.operations.holds import ListHolds
from notary.database import OpenTransaction
from notary.store.contract import Moment, as_of

# One step of the index for each principal, instead of a walk over all approvals that are kept.
_NEXT = "SELECT min(principal) FROM approvals WHERE principal > ?"
_RECORD = (
    "SELECT approval_id, session_id, action_id, request_hash, state, created_at, expires_at, summary, holder, outcome,"
    " principal, epoch FROM approvals WHERE seq = ?"
)

_HALF_MS = 0.0005
"""Times are shown to the nearest millisecond: what is shown as the bound itself is not before it."""
Place = tuple[float, str, int]
"""created_at, approval_id and seq: what approvals are ordered by."""


class HoldList:
    """The query of one list. `moment` decides which pending ones still wait."""

    def __init__(self, connection: OpenTransaction, asked: ListHolds, moment: Moment) -> None:
        self._connection = connection
        self._asked = asked
        self._moment = moment
        self._states: tuple[str | None, ...] = (None,) if asked.states is None else tuple(dict.fromkeys(asked.states))
        self._where, self._values = _conditions(asked)

    def total(self) -> int:
        """How many there are, however few are listed."""
        counts = []
        for state in self._states:
            where, values = self._of(state)
            counts.append(self._connection.execute(f"SELECT count(*) FROM approvals WHERE {where}", values))  # noqa: S608
        return sum(count.fetchone()[0] for count in counts)

    def records(self) -> list[ApprovalRecord]:
        """At most so many as are asked for, newest first; of each body what a list shows of it.

        Asked `in_turns`, the newest of each principal are chosen, then the second of each, and so on.
        """
        limit = self._asked.limit
        if self._asked.in_turns:
            places = sorted(_in_turns([self._walk(name) for name in self._principals()], limit), reverse=True)
        else:
            places = list(islice(self._walk(), limit))
        rows = (self._connection.execute(_RECORD, (seq,)).fetchone() for *_, seq in places)
        return [as_of(ApprovalRecord(*row), self._moment.epoch) for row in rows]

    def _principals(self) -> list[str]:
        names: set[str] = set()
        for state in self._states:
            where, more = ("", ()) if state is None else (" AND state = ?", (state,))
            name: str | None = ""  # of an earlier approval whose body can't be read
            while name is not None:
                names.add(name)
                (name,) = self._connection.execute(_NEXT + where, (name, *more)).fetchone()
        return sorted(names)

    def _walk(self, principal: str | None = None) -> Iterator[Place]:
        """Newest first; a walk of an index for each state."""
        walks = []
        for state in self._states:
            where, values = self._of(state)
            if principal is not None:
                where, values = f"{where} AND principal = ?", (*values, principal)
            walks.append(
                self._connection.execute(
                    f"SELECT created_at, approval_id, seq FROM approvals WHERE {where}"  # noqa: S608 - names of ours
                    " ORDER BY created_at DESC, approval_id DESC",
                    values,
                )
            )
        return heapq.merge(*walks, reverse=True)

    def _of(self, state: str | None) -> tuple[str, tuple[object, ...]]:
        if state is None:
            return self._where, self._values
        if state == "pending":
            live = (self._moment.epoch, self._moment.now)
            return f"state = 'pending' AND epoch = ? AND expires_at > ? AND {self._where}", (*live, *self._values)
        return f"state = ? AND {self._where}", (state, *self._values)


def _conditions(asked: ListHolds) -> tuple[str, tuple[object, ...]]:
    before = None if asked.before is None else asked.before - _HALF_MS
    filters = {"principal = ?": asked.principal, "action_id = ?": asked.action_id, "created_at < ?": before}
    given = {condition: value for condition, value in filters.items() if value is not None}
    return " AND ".join(given) or "1", tuple(given.values())


def _in_turns(walks: list[Iterator[Place]], limit: int) -> list[Place]:
    chosen: list[Place] = []
    while walks and len(chosen) < limit:
        heads = [(walk, place) for walk in walks if (place := next(walk, None)) is not None]
        chosen += sorted((place for _, place in heads), reverse=True)
        walks = [walk for walk, _ in heads]
    return chosen[:limit]
