"""Chooses the checkpoint at which a ledger is cut: the newest one before a time behind which nothing is under way.

A cut lies before the first intent that waits for its end, and before the newest intent of all, which stays so that
numbers of intents go on. Functions of a connection; they change nothing.
"""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from notary.database import OpenTransaction
from notary.ledger import history
from notary.ledger.cut import Cut

_FIRST_LATER: Final = "SELECT min(seq) FROM events WHERE time >= ?"
_FIRST_OPEN: Final = (
    "SELECT intents.leaf, intents.intent_id FROM unresolved CROSS JOIN intents USING (seq) ORDER BY intents.seq LIMIT 1"
)
_NEWEST_INTENT: Final = "SELECT leaf, intent_id FROM intents ORDER BY seq DESC LIMIT 1"
_CHECKPOINT: Final = "SELECT size, time, note FROM checkpoints WHERE size <= ? ORDER BY size DESC LIMIT 1"


class NothingToSeal(Exception):
    """There is no whole range to seal. The text is a sentence for people."""


class ChosenCut(NamedTuple):
    """A checkpoint, the last event and the last intent that it commits to, and why it is not a later one."""

    size: int
    time: str
    note: str
    events: int
    intents: int
    stopped_by: str


def choose(connection: OpenTransaction, before: float, beginning: Cut) -> ChosenCut:
    """The cut for everything before a time (Unix seconds). Raises NothingToSeal."""
    if history.read(connection).leaves:
        raise NothingToSeal("the ledger begins before there was a tree, and such a beginning can't be sealed")
    bound, stopped_by = _bound(connection, before)
    row = connection.execute(_CHECKPOINT, (bound,)).fetchone()
    if row is None or row[0] <= beginning.leaves:
        raise NothingToSeal(f"no checkpoint lies before {stopped_by}, behind what is sealed already")
    size, time, note = row
    events = _last_before(connection, "events", size, beginning.events)
    intents = _last_before(connection, "intents", size, beginning.intents)
    return ChosenCut(size, time, note, events, intents, stopped_by)


def _bound(connection: OpenTransaction, before: float) -> tuple[int, str]:
    """The first leaf that stays, and what it is."""
    bounds = []
    seq = connection.execute(_FIRST_LATER, (round(before * 1000),)).fetchone()[0]
    if seq is not None:
        bounds.append((_leaf_of(connection, "events", seq), "the first event of that time or later"))
    for statement, what in ((_FIRST_OPEN, "has no end yet"), (_NEWEST_INTENT, "is the newest of all")):
        if (row := connection.execute(statement).fetchone()) is not None:
            bounds.append((row[0], f"the intent {row[1]}, which {what}"))
    return min(bounds, default=(2**62, "its end"))


def _leaf_of(connection: OpenTransaction, table: Literal["events", "intents"], seq: int) -> int:
    leaf: int = connection.execute(f"SELECT leaf FROM {table} WHERE seq = ?", (seq,)).fetchone()[0]  # noqa: S608
    return leaf


def _last_before(connection: OpenTransaction, table: Literal["events", "intents"], size: int, known: int) -> int:
    """Number of the last row whose leaf is below `size`; numbers and leaves rise together."""
    last = connection.execute(f"SELECT max(seq) FROM {table}").fetchone()[0] or known  # noqa: S608 - a literal
    return _search(lambda seq: _leaf_of(connection, table, seq) < size, known, last)


def _search(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number of (low, high] that fits, where all smaller ones do; `low` if none does."""
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
