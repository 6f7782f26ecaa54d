"""Standing approvals in Redis, within one unit: see notary/store/standing.py.

A unit that uses one depends on its row and its count: of two hosts that open its last call, one finds the other's.
"""

from collections.abc import Iterable, Sequence

import msgspec

from ipc.operations.standing import StandingRow
from notary.backends.redis.changes import Changes, number
from notary.backends.redis.keys import RedisKeys
from notary.store.contract import StoreGone
from notary.store.standing import MOST_DUE, decode_row, encode_row

_CALLS = "1"
"""The one field of a count."""
_VERSION = "v"
_NO_END = "none"
"""SECURITY: a count goes with its row alone. A life computed by a gateway whose clock is ahead would be too short, and
the row would be good for all its calls again."""


class RedisStanding:
    """See StandingStore. It sees its own changes."""

    def __init__(self, changes: Changes, keys: RedisKeys) -> None:
        self._changes = changes
        self._keys = keys
        self._rows: dict[str, StandingRow | None] = {}
        self._calls: dict[str, int] = {}

    def of_call(self, action_id: str, principal: str) -> list[StandingRow]:
        """See StandingStore."""
        found = set(self._changes.look("HKEYS", self._keys.standing_of(action_id, principal)))
        found |= {one.standing_id for one in self._own() if (one.action_id, one.principal) == (action_id, principal)}
        unread = sorted(found - self._rows.keys())
        if unread:  # one question for all of them
            texts = self._changes.read_all([("HGET", self._keys.standing, standing_id) for standing_id in unread])
            self._rows |= {standing_id: _read(text) for standing_id, text in zip(unread, texts, strict=True)}
        return _sorted(self.get(standing_id) for standing_id in found)

    def get(self, standing_id: str) -> StandingRow | None:
        """See StandingStore."""
        if standing_id not in self._rows:
            self._rows[standing_id] = _read(self._changes.read("HGET", self._keys.standing, standing_id))
        return self._rows[standing_id]

    def listed(self) -> list[StandingRow]:
        """See StandingStore. A unit that has read all of them depends on how many there are."""
        self._changes.read("HLEN", self._keys.standing)
        fields = self._changes.look("HGETALL", self._keys.standing)
        rows = {standing_id: _read(text) for standing_id, text in _pairs(fields)}
        return _sorted({**rows, **self._rows}.values())

    def due(self, now: float) -> list[str]:
        """See StandingStore. As it is now, and only while Redis is in use."""
        if not self._changes.client.is_taken:
            return []
        ends = _pairs(self._changes.client.call("HGETALL", self._keys.standing_until))
        return [standing_id for standing_id, until in ends if number(until) <= now][:MOST_DUE]

    def calls(self, standing_id: str) -> int:
        """See StandingStore."""
        if standing_id not in self._calls:
            self._calls[standing_id] = number(
                self._changes.read("HGET", self._keys.standing_calls(standing_id), _CALLS)
            )
        return self._calls[standing_id]

    def put(self, row: StandingRow) -> None:
        """See StandingStore."""
        self._changes.step("hset", self._keys.standing, row.standing_id, encode_row(row).decode())
        self._changes.step("hset", self._keys.standing_until, row.standing_id, str(row.until))
        self._changes.step("hset", self._keys.standing_of(row.action_id, row.principal), row.standing_id, "1")
        self._rows[row.standing_id] = row

    def count(self, standing_id: str) -> None:
        """See StandingStore."""
        self._count(standing_id, 1)

    def uncount(self, standing_id: str) -> None:
        """See StandingStore."""
        self._count(standing_id, -1)

    def forget(self, row: StandingRow) -> None:
        """See StandingStore."""
        self._changes.step("hdel", self._keys.standing, row.standing_id)
        self._changes.step("hdel", self._keys.standing_until, row.standing_id)
        self._changes.step("hdel", self._keys.standing_of(row.action_id, row.principal), row.standing_id)
        for field in (_CALLS, _VERSION):  # an empty hash is gone
            self._changes.step("hdel", self._keys.standing_calls(row.standing_id), field)
        self._rows[row.standing_id] = None

    def _count(self, standing_id: str, change: int) -> None:
        if self.get(standing_id) is None:
            return
        calls = self.calls(standing_id)
        self._changes.step("count", self._keys.standing_calls(standing_id), _CALLS, str(change), "0", _NO_END)
        self._calls[standing_id] = max(0, calls + change)

    def _own(self) -> list[StandingRow]:
        return [row for row in self._rows.values() if row is not None]


def _pairs(fields: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(fields[::2], fields[1::2], strict=True))


def _sorted(rows: Iterable[StandingRow | None]) -> list[StandingRow]:
    return sorted((row for row in rows if row is not None), key=lambda row: (row.until, row.standing_id))


def _read(text: str | None) -> StandingRow | None:
    try:
        return None if text is None else decode_row(text)
    except (msgspec.MsgspecError, RecursionError):
        raise StoreGone("Redis: a standing approval can't be read") from None
