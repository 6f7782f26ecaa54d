"""One walk along a whole ledger: its chain, its tree, and what its events name, in steps and with constant memory.

Shared by the running gateway (notary/reader.py) and by the offline check (notary/reading/audit.py), which brings keys.
Each step is one transaction of its caller; what is appended meanwhile is walked too. Stops at the first thing that does
not fit. Never writes.
"""

import sqlite3
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress

from contract.audit import ChainReport
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.cut import BEGINNING, END, NOTHING, Cut, read_cleared, read_cut
from notary.ledger.head import read_head
from notary.ledger.page_ring import RingEntry
from notary.ledger.settling import head_with, unsettled
from notary.reading.kept_walk import KeptWalk
from notary.reading.leftover import problem_of_leftover
from notary.reading.named_walk import NamedWalk
from notary.reading.tree_walk import Misplaced, Proven, TreeWalk
from notary.reading.verify import CHUNK, EVENT_COLUMNS, Break, Walk
from notary.signing.receipt_keys import ReceiptKeys
from notary.tree.notes import Keys

_READ = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq >= ? ORDER BY seq LIMIT {CHUNK}"  # noqa: S608
_READ_WITHOUT_TREE = _READ.replace("leaf", "NULL")


class WholeWalk:
    """Where a walk along one ledger has come to. `broken` is the first thing that does not fit.

    Without `keys` signatures of receipts are not looked at, without `signers` those of checkpoints. `is_segment`: it is
    a sealed segment, which ends where it says, and not a ledger, which has no end.
    """

    def __init__(
        self, keys: ReceiptKeys | None = None, signers: Keys | None = None, *, has_tree: bool = True,
        is_segment: bool = False,
    ) -> None:  # fmt: skip
        self._given = keys, signers
        self._is_segment = is_segment
        self.broken: Break | None = None
        self.proven = Proven(0, None, None)
        self.entries: list[RingEntry] = []
        """Entries of the journal, once the walk has come to its end."""
        self._has_tree = has_tree
        self._start()
        self._damaged = ""
        """Damage where the cuts stand."""
        self._total: int | None = None
        """Events that the ledger says it has, once the walk has come to its end."""

    def _start(self) -> None:
        keys, signers = self._given
        self.chain = Walk()
        self.named = NamedWalk(keys)
        self.kept = KeptWalk()
        self.tree = TreeWalk(signers) if self._has_tree else None
        self.beginning: Cut = NOTHING
        """Events before it are in sealed segments."""
        self._last: Cut = NOTHING
        """The end of a segment."""
        self._has_begun = not self._has_tree

    def step(self, connection: OpenTransaction) -> bool:
        """Check the next events, intents, tiles and checkpoints, in the transaction that is open; at the end of the
        tables what concerns all of them, too. False when the walk has come to its end. Raises sqlite3.Error for what
        is no damage."""
        try:
            if self._walked(connection):
                return True
            self.broken = self.broken or self._end(connection)
        except Misplaced as error:
            self.broken = Break(error.name, error.seq, error.reason)
        except DatabaseGone as error:
            self.broken = self._after(f"what comes after it can't be read: {error}")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damage(error):
                raise
            self.broken = self._after(f"the file is damaged after it: {error}")
        if self._total is None:  # it has not come to the journal
            self._total = self._told(connection)
        return False

    def _begin(self, connection: OpenTransaction) -> None:
        """Begin behind what is sealed, with nothing left before."""
        self._has_begun = True
        beginning, end = self._cuts(connection)
        self.beginning, self._last = beginning, end
        if end != NOTHING and not self._is_segment:
            # SECURITY: less is asked of a segment, which need not say who sealed and erased what is not there.
            self.broken = Break(None, None, "it says that it ends, as a segment does, and it is a ledger")
            return
        if beginning != NOTHING or end != NOTHING:
            self.chain = Walk(beginning.head)
            self.named.begin(beginning, end)
            if end != NOTHING:
                self.kept.begin(end)
            if self.tree is not None:
                self.tree.begin(beginning, is_segment=end != NOTHING)
        if beginning.events and not self._damaged:
            self.broken = problem_of_leftover(connection, beginning, self._given[0])

    def _is_sealed_further(self, connection: OpenTransaction) -> bool:
        """True if the ledger was sealed since the walk began: what it has counted is not there any more."""
        return self._has_begun and not self._damaged and self._has_tree and self._cuts(connection)[0] != self.beginning

    def _cuts(self, connection: OpenTransaction) -> tuple[Cut, Cut]:
        """The cuts that the ledger tells. Damage to their place is found at the end, so that all events are read."""
        try:
            return read_cut(connection, BEGINNING), read_cut(connection, END)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._damaged = f"the file is damaged after it: {error}"
            return NOTHING, NOTHING

    def _walked(self, connection: OpenTransaction) -> bool:
        if self._is_sealed_further(connection):
            self._start()
        if not self._has_begun:
            self._begin(connection)
            if self.broken is not None:
                return False
        rows = connection.execute(_READ if self.tree else _READ_WITHOUT_TREE, (self.chain.next_seq,)).fetchall()
        broken = self.chain.step(rows)
        self.broken = self.named.step(connection, rows, self.chain.events) or broken
        self.broken = self.kept.step(connection, [row[0] for row in rows], self.chain.events) or self.broken
        if self.broken is None and self.tree is not None:
            self.tree.step(connection, rows)
        has_more = len(rows) == CHUNK or (self.tree is not None and self.tree.has_more)
        return self.broken is None and has_more

    def _told(self, connection: OpenTransaction) -> int:
        """How many events the ledger says it has; where it says nothing, or that can't be read, how many there were."""
        with suppress(sqlite3.Error, UnicodeDecodeError, DatabaseGone):
            if (head := read_head(connection)) is not None:
                return head.seq
        return self.chain.head.seq

    def _end(self, connection: OpenTransaction) -> Break | None:
        hidden = self.beginning if self._has_tree and read_cleared(connection) is not None else NOTHING
        self.entries = unsettled(connection)
        head = head_with(connection, self.entries)
        self._total = self.chain.head.seq if head is None else head.seq
        broken = self._journal(connection, self.entries) or self.chain.end(head)
        if broken is None and self.tree is not None:
            self.proven = self.tree.end(connection, self.entries)
        broken = (
            broken
            or self.named.end(connection, self.entries, hidden)
            or self.kept.end(connection, self.entries, hidden)
        )
        if broken is None and self.tree is not None:
            broken = self.named.check_epoch(connection) or self.named.check_names(self.tree.names, self.tree.committed)
            broken = broken or (self._ends() if self._is_segment else self.named.check_beginning(self.beginning))
        return broken or (self._after(self._damaged) if self._damaged else None)

    def _ends(self) -> Break | None:
        """Check that a segment ends where it says."""
        end = self._last
        found = (self.chain.head, self.proven.size, 0 if self.tree is None else self.tree.intents)
        if (end.head, end.leaves, end.intents) == found:
            return None
        return Break(None, None, "it does not end where it says that it ends")

    def _journal(self, connection: OpenTransaction, entries: Sequence[RingEntry]) -> Break | None:
        rows = [row for entry in entries for row in entry.events]
        broken = self.chain.step(rows)
        receipts = {row[0]: row[1:] for entry in entries for row in entry.receipts}
        problem = self.named.check(rows, self.chain.events, receipts)
        return problem or self.kept.journal(connection, entries, self.chain.events) or broken

    def _after(self, reason: str) -> Break:
        return self.broken or Break(self.chain.last_id, self.chain.head.seq or None, reason)

    @property
    def has_signers(self) -> bool:
        """Signatures of checkpoints were looked at."""
        return self._given[1] is not None

    @property
    def events(self) -> int:
        """How many were found in order, those in sealed segments not counted."""
        return self.chain.head.seq - self.beginning.events

    def report(self) -> ChainReport:
        """The outcome in the interface's words."""
        broken, chain, (size, root, note) = self.broken, self.chain, self.proven
        return ChainReport(
            intact=broken is None,
            events_checked=self.events,
            broken_at=None if broken is None else (broken.event_id or "head"),
            total_events=max((self._total or 0) - self.beginning.events, 0),
            verified_links=self.events,
            reason=None if broken is None else broken.reason,
            head=chain.head.hash,
            size=size,
            root=None if root is None else b64encode(root).decode(),
            checkpoint=note,
        )


def is_damage(error: sqlite3.DatabaseError | UnicodeDecodeError) -> bool:
    """True when SQLite found an invalid page, or Python's module an invalid text."""
    if isinstance(error, UnicodeDecodeError):  # in what SQLite says of a damaged schema
        return True
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # of Python's module itself, which has one such error of its own while it reads
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
