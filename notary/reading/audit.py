"""The offline check of a whole ledger file: chain, receipts, intents, and the file itself.

Checks, beyond the chain, that every receipt which an event names is there, says the same, and
carries a signature by a listed key; that every intent is resolved or shown as unresolved. Reads each row once, with
constant memory. Never writes to the file, never asks the service.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from notary.backends.sqlite import file_uri
from notary.database import OpenTransaction
from notary.ledger.head import read_head
from notary.ledger.schema import INTEGRITY, KNOWN_VERSIONS, WITHOUT_TREE, planted, schema_version
from notary.reading.kept_checkpoints import KeptCheckpoint, problem_of
from notary.reading.source import Source, opened
from notary.reading.verify import Break
from notary.reading.whole import WholeWalk, is_damage
from notary.signing.receipt_keys import ReceiptKeys
from notary.tree.notes import Keys


class CannotCheck(Exception):
    """The check is impossible: no such file, no ledger, not readable. The text is a sentence for people."""


class ForeignShape(CannotCheck):
    """The file has something that computes when it is read, which no gateway makes. The text says what."""


@dataclass(slots=True)
class Findings:
    """The findings of the check. `receipts` have a valid signature; `broken` is the first fault."""

    events: int = 0
    is_segment: bool = False
    sealed: int = 0
    """Events before it that are in sealed segments."""
    receipts: int = 0
    unresolved: int = 0
    continued: int = 0
    """Checkpoints that were kept, and that it continues."""
    signed: int = 0
    """Checkpoints of its own that have a signature by a key that was given."""
    unsigned_leaves: int = 0
    """Leaves, those of the journal too, that the newest of them does not commit to."""
    broken: Break | None = None


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a ledger without changing it; a copy without its `-wal` is fine. Raises CannotCheck.

    SECURITY: the file may be anybody's. No table is read before its schema is known to be one of plain tables.
    """
    if not path.is_file():
        raise CannotCheck(f"{path} does not exist.")
    wal = path.with_name(path.name + "-wal")
    # Without a WAL beside it no process has the file open, and SQLite need not create the files with which it would
    # share it; they could not be created on a read-only medium.
    uri = file_uri(path, "ro") if wal.exists() else file_uri(path, "ro", immutable="1")
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=5)
        try:
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON"):
                connection.execute(f"PRAGMA {pragma}")
            if (name := planted(connection)) is not None:
                raise ForeignShape(f"it has a {name}, which no gateway makes")
            version = schema_version(connection)
        except (sqlite3.Error, UnicodeDecodeError, ForeignShape):
            connection.close()
            raise
    except sqlite3.OperationalError as error:
        raise CannotCheck(f"{path} cannot be read: {error}. Copy it and its -wal to where you can write.") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise CannotCheck(f"{path} is not a ledger: {error}.") from None
    if version not in KNOWN_VERSIONS:
        connection.close()
        raise CannotCheck(f"{path} is not a ledger that this version knows.")
    return connection


@contextmanager
def readable(source: Source) -> Iterator[OpenTransaction]:
    """A ledger, wherever it is. Raises CannotCheck, NotReadable."""
    if source.file is None:
        with opened(source) as connection:
            yield connection
    else:
        with closing(open_read_only(source.file)) as file:
            yield file


def check(
    connection: OpenTransaction, keys: ReceiptKeys, progress: Callable[[int, int], None],
    kept: Sequence[KeptCheckpoint] = (), signers: Keys | None = None, *, is_segment: bool = False,
) -> Findings:  # fmt: skip
    """Check everything, up to the first thing that does not fit, and that the ledger continues the checkpoints that
    were kept. `signers`: keys that each of the ledger's own checkpoints must be signed by. `progress` hears events done
    and events in all. `is_segment`: see WholeWalk.

    A gateway may go on writing to the file meanwhile: what it appends is checked too. Raises CannotCheck.
    """
    findings = Findings(is_segment=is_segment)
    try:
        findings.broken = _problem_of_version(connection, kept, signers)
        if findings.broken is None:
            walk = WholeWalk(keys, signers, has_tree=_has_tree(connection), is_segment=is_segment)
            _walk(connection, findings, walk, progress, kept)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damage(error):
            raise CannotCheck(f"The file could not be read to its end: {error}.") from None
        findings.broken = Break(None, None, f"the file is damaged: {error}")
    return findings


def _walk(
    connection: OpenTransaction, findings: Findings, walk: WholeWalk, progress: Callable[[int, int], None],
    kept: Sequence[KeptCheckpoint],
) -> None:  # fmt: skip
    head = read_head(connection)
    while True:
        connection.execute("BEGIN")
        try:
            has_more = walk.step(connection)
            if not has_more:
                findings.broken = walk.broken or _problem_of_kept(connection, walk, kept)
                findings.broken = findings.broken or _problem_of_structure(connection)
        finally:
            connection.execute("ROLLBACK")
        findings.events, findings.sealed = walk.events, walk.beginning.events
        progress(findings.events, head.seq - findings.sealed if head else 0)
        if not has_more:
            break
    findings.receipts, findings.unresolved = walk.named.receipts, walk.named.unresolved
    findings.continued = len(kept)
    if walk.has_signers and walk.tree is not None and findings.broken is None:
        findings.signed = walk.tree.checkpoints
        waiting = sum(len(entry.event_leaves) + len(entry.intent_leaves) for entry in walk.entries)
        findings.unsigned_leaves = walk.proven.size + waiting - walk.tree.committed


def _has_tree(connection: OpenTransaction) -> bool:
    return schema_version(connection) not in WITHOUT_TREE


def _problem_of_version(
    connection: OpenTransaction, kept: Sequence[KeptCheckpoint], signers: Keys | None
) -> Break | None:  # fmt: skip
    """A ledger from before there was a tree must have none, and neither a kept checkpoint nor a key of checkpoints can
    be of it."""
    if _has_tree(connection):
        return None
    version = schema_version(connection)
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name IN ('tiles', 'checkpoints')").fetchone() is not None:
        return Break(None, None, f"it says that it is of schema {version}, which had no tree, and it has one")
    if kept:
        return Break(
            None, None, f"{kept[0].path.name}: the checkpoint of {kept[0].checkpoint.time} is of a ledger with a tree, "
            f"and this one has none: its tree was taken out, or it is an earlier copy, of schema {version}"
        )  # fmt: skip
    if signers is not None:
        return Break(
            None, None, "no checkpoint commits to it, and there are keys to check one with: its tree was taken out, "
            f"or it is an earlier copy, of schema {version}"
        )  # fmt: skip
    return None


def _problem_of_kept(connection: OpenTransaction, walk: WholeWalk, kept: Sequence[KeptCheckpoint]) -> Break | None:
    problem = problem_of(connection, walk.entries, kept) if kept else None
    return None if problem is None else Break(None, None, problem)


def _problem_of_structure(connection: OpenTransaction) -> Break | None:
    if (name := planted(connection)) is not None:
        return Break(None, None, f"it has a {name}, which no gateway makes")
    # An index that leaves out a row hides it from every query, and from no walk.
    (answer,) = connection.execute(INTEGRITY).fetchone()
    return None if answer == "ok" else Break(None, None, f"the file's own structure is damaged: {answer}")


def neighbours(connection: OpenTransaction, seq: int) -> list[tuple[int, bytes]]:
    """(number, stored bytes) of an event and those next to it, as far as they can be read."""
    try:
        rows = connection.execute(
            "SELECT seq, CAST(bytes AS BLOB) FROM events WHERE seq = ?"
            " OR seq = (SELECT max(seq) FROM events WHERE seq < ?)"
            " OR seq = (SELECT min(seq) FROM events WHERE seq > ?) ORDER BY seq",
            (seq, seq, seq),
        )
        return rows.fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return []
