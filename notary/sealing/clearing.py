"""Deletes rows that a sealed segment has, oldest first, in slices: no unit of the database lasts long.

Each slice is a transaction that also notes how far the deletion has come (`CLEARED`), so that the next slice goes on
after a crash, in whichever process. Keys of kept values are overwritten. Functions of a connection inside a transaction
that writes.
"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from notary.database import OpenTransaction
from notary.ledger import sealed_intents
from notary.ledger.activity import count_slice, position
from notary.ledger.chain import event_hash
from notary.ledger.cut import BEGINNING, CLEARED, Cut, forget_cleared, read_cleared, read_cut, write_cut
from notary.ledger.encrypted_values import forget_keys, number_of
from notary.ledger.kept_values import kept_names

FIRST_SLICE: Final = 200
"""Events of the first slice, and intents."""
SLICE_SECONDS: Final = 0.05
_LEAST, _MOST = 20, 2000
_DELETED: Final = (("events", "events"), ("receipts", "events"), ("intents", "intents"))
"""Table, and the member of Cut that says up to which number its rows go."""
_EVENTS: Final = "SELECT bytes FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
_INTENTS: Final = "SELECT intent_id, dispatched_at FROM intents WHERE seq > ? AND seq <= ?"
_KEPT: Final = "DELETE FROM kept_values WHERE key = ? AND seq <= ?"
_VALUES: Final = "SELECT value FROM kept_values WHERE key = ? AND seq <= ? AND value IS NOT NULL"


class ClearedSlice(NamedTuple):
    """`deleted` events and intents were deleted, `left` are still there; `has_kept`: kept values were deleted."""

    left: int
    deleted: int = 0
    has_kept: bool = False


class SliceSize:
    """How many rows a slice has: as many as fit into SLICE_SECONDS, going by the slice before."""

    def __init__(self) -> None:
        self.rows = FIRST_SLICE

    def took(self, seconds: float) -> None:
        """A slice of so many rows took so long."""
        fitting = round(self.rows * SLICE_SECONDS / max(seconds, SLICE_SECONDS / 100))
        self.rows = max(_LEAST, min(fitting, 2 * self.rows, _MOST))


def clear_all(perform: Callable[[int], int], clock: Callable[[], float]) -> None:
    """Delete everything that is sealed. `perform` deletes a slice of at most so many rows, in a transaction of its
    own, and returns how many are left."""
    size, left = SliceSize(), 1
    while left:
        began = clock()
        left = perform(size.rows)
        size.took(clock() - began)


def clear_slice(connection: OpenTransaction, rows: int, *, is_file: bool) -> ClearedSlice:
    """Delete at most so many events, and as many intents, and what belongs to them. `is_file`: of a SQLite file, whose
    free pages keep what was deleted. Raises DatabaseGone."""
    cleared, beginning = read_cleared(connection), read_cut(connection, BEGINNING)
    if cleared is None:
        return ClearedSlice(0)
    if (uncounted := min(cleared.events + rows, beginning.events) - position(connection)) > 0:
        count_slice(connection, uncounted, is_file=is_file)  # else they would be missing in the summary
    upto = Cut(
        events=min(cleared.events + rows, beginning.events, max(position(connection), cleared.events)),
        intents=min(cleared.intents + rows, beginning.intents), hash=cleared.hash,
    )  # fmt: skip
    keys, stored = [], b""
    for (stored,) in connection.execute(_EVENTS, (cleared.events, upto.events)):
        event = kept_names(stored)
        if event.kept:
            keys.append((event.key, upto.events))
    if stored:
        upto = msgspec.structs.replace(upto, hash=event_hash(bytes(stored)))
    numbers = _numbers(connection, keys) if is_file else set[int]()
    connection.executemany(_KEPT, keys)
    forget_keys(connection, numbers)
    sealed_intents.add(connection, connection.execute(_INTENTS, (cleared.intents, upto.intents)).fetchall())
    for table, member in _DELETED:
        # From where on: a PostgreSQL would look again at each row that was deleted before.
        bounds = getattr(cleared, member), getattr(upto, member)
        connection.execute(f"DELETE FROM {table} WHERE seq > ? AND seq <= ?", bounds)  # noqa: S608 - of this file
    left = beginning.events - upto.events + beginning.intents - upto.intents
    if left:
        write_cut(connection, CLEARED, upto)
    else:
        forget_cleared(connection)
    return ClearedSlice(left, upto.events - cleared.events + upto.intents - cleared.intents, bool(keys))


def _numbers(connection: OpenTransaction, keys: Iterable[tuple[str, int]]) -> set[int]:
    """The numbers of the keys of these rows."""
    rows = [row for key in keys for row in connection.execute(_VALUES, key).fetchall()]
    return {number for (value,) in rows if (number := number_of(value)) is not None}
