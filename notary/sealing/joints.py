"""Whether sealed segments, and the ledger that they were taken from, go on from each other without a gap."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.cut import BEGINNING, END, NOTHING, Cut, read_cut
from notary.sealing.segment import KEYS, CarriedKeys, digest_of
from notary.tree.tiles import Tree

PATTERN = "segment-*.sqlite3"


class LedgerPart(NamedTuple):
    """A segment, or the ledger itself, which is the last part. `end` is None for the ledger."""

    place: str
    ledger_id: str
    beginning: Cut
    end: Cut | None
    digest: str
    root: str
    """Root of the tree up to its beginning, computed from its own tiles; hexadecimal."""

    def holds(self, size: int) -> bool:
        """True if a checkpoint of this size is within a segment."""
        return self.end is not None and self.beginning.leaves <= size <= self.end.leaves


def segments_in(folder: Path) -> list[Path]:
    """The segments in a folder, in their order; names have as many digits as it takes."""
    return sorted(folder.glob(PATTERN))


def part_of(connection: OpenTransaction, place: str) -> LedgerPart:
    """The part of the ledger that a place holds. Raises DatabaseGone."""
    row = connection.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
    beginning, end = read_cut(connection, BEGINNING), read_cut(connection, END)
    root = "" if beginning == NOTHING else Tree(connection).root(beginning.leaves).hex()
    is_segment = end != NOTHING
    digest = digest_of(Path(place)) if is_segment else ""
    return LedgerPart(place, "" if row is None else row[0], beginning, end if is_segment else None, digest, root)


def carried_keys(connection: OpenTransaction) -> CarriedKeys | None:
    """The keys that a segment carries; None for a ledger, which carries none. Raises DatabaseGone."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (KEYS,)).fetchone()
    try:
        return None if row is None else msgspec.json.decode(row[0], type=CarriedKeys)
    except (TypeError, RecursionError, msgspec.MsgspecError) as error:
        raise DatabaseGone(f"the keys that it carries make no sense: {error}") from None


def problem_of_beginning(part: LedgerPart) -> str | None:
    """Why the leaves before a part are not those that it says were sealed."""
    if part.root == part.beginning.root:
        return None
    return f"its tree does not begin with the {part.beginning.leaves} leaves that it says are sealed"


def problem_of_joints(parts: Sequence[LedgerPart], *, from_the_beginning: bool) -> tuple[str, str] | None:
    """The first part that does not go on where the one before it ends, and why; parts in order."""
    first = parts[0]
    if from_the_beginning and first.beginning.leaves:
        return first.place, f"the segments of the first {first.beginning.leaves} leaves are missing"
    if from_the_beginning and parts[-1].end is not None:
        return parts[-1].place, "it is a segment, and not the ledger that the segments were taken from"
    for before, after in pairwise(parts):
        end = before.end or NOTHING
        if after.ledger_id != before.ledger_id:
            return after.place, f"it is of another ledger than {before.place}"
        if after.beginning.leaves != end.leaves:
            gap = f"{after.beginning.leaves} leaves lie before it, and {before.place} ends behind {end.leaves}"
            return after.place, gap
        if not after.beginning.is_same_place(end):
            return after.place, f"it does not go on from the end of {before.place}"
        if after.beginning.digest != before.digest:
            return before.place, f"its bytes are not those that {after.place} names by their hash"
    return None
