"""Kept values in the ledger: rows beside the events, with the salt of each commitment.

`key` is the id of the intent under which a call was opened, and of every other call the id of its event (`key_of`).
`seq` is the number of that call's event, null until it is written. An erased row has neither value nor salt, and
`erased_by` is the number of the EvidenceErased event that lists its commitment. Rows go through the journal, as events
do. A SQLite file has their values encrypted (notary/ledger/encrypted_values.py). Functions of a connection inside an
open transaction.
"""

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ipc.evidence.kept_values import (
    KEPT,
    MASKED,
    MAX_KEPT,
    MAX_VALUE_BYTES,
    SALT_BYTES,
    KeptValues,
    commitment,
    is_kept_text,
)
from notary.database import NotStorable, OpenTransaction
from notary.ledger.encrypted_values import VALUE_KEYS, ValueOpener, encrypted_all, number_of
from notary.store.own_pages import written_anew

TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS kept_values (
        key TEXT NOT NULL, pointer TEXT NOT NULL, seq INTEGER, kind TEXT NOT NULL, value BLOB, salt BLOB,
        erased_by INTEGER, PRIMARY KEY (key, pointer)
    ) STRICT, WITHOUT ROWID
    """,
    # A value begins with the number of its key: this index, too, grows at its end.
    "CREATE INDEX IF NOT EXISTS kept_values_by_value ON kept_values (value, pointer) WHERE value IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS kept_values_by_seq ON kept_values (seq) WHERE value IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS kept_values_erased ON kept_values (erased_by, seq) WHERE erased_by IS NOT NULL",
    *VALUE_KEYS.tables,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS kept_values (
        key text COLLATE "C" NOT NULL, pointer text COLLATE "C" NOT NULL, seq bigint, kind text NOT NULL, value bytea,
        salt bytea, erased_by bigint, PRIMARY KEY (key, pointer)
    )
    """,
    """
    CREATE INDEX IF NOT EXISTS kept_values_by_value ON kept_values (pointer, value)
    WHERE kind = 'kept' AND value IS NOT NULL
    """,
    *TABLES[2:4],
)

HAS_KEPT: Final = "SELECT 1 FROM sqlite_master WHERE name = 'kept_values'"

COLUMNS: Final = "key, pointer, seq, kind, value, salt, erased_by"
KeptRow = tuple[str, str, int | None, str, bytes, bytes]
"""key, pointer, seq, kind, value (canonical bytes), salt."""
KeptEnd = tuple[str, int]
"""key of an intent, and the number of the event that ended it."""

_INSERT: Final = "INSERT INTO kept_values (key, pointer, seq, kind, value, salt) VALUES (?, ?, ?, ?, ?, ?)"
_END: Final = "UPDATE kept_values SET seq = ? WHERE key = ?"
_HAS_VALUES: Final = "SELECT 1 FROM kept_values WHERE value IS NOT NULL AND seq <= ? LIMIT 1"
_HAS_PLAIN: Final = "SELECT 1 FROM kept_values WHERE value >= x'01' LIMIT 1"
_CHUNK: Final = 1000
_OF: Final = "SELECT pointer, kind, value, salt, erased_by FROM kept_values WHERE key = ? ORDER BY pointer"


class StoredValue(NamedTuple):
    """A row of a call. Without value and salt once it is erased."""

    pointer: str
    kind: str
    value: bytes | None
    salt: bytes | None
    erased_by: int | None

    @property
    def commitment(self) -> str | None:
        """The commitment to it; None once it is erased."""
        return None if self.value is None or self.salt is None else commitment(self.salt, self.value)


class KeptNames(msgspec.Struct):
    """The members of an event that name its rows here."""

    event_id: str = ""
    intent_id: str | None = None
    kept: dict[str, str] | None = None
    """By pointer, its commitments; None: it keeps no value."""

    @property
    def key(self) -> str:
        """The key of its rows."""
        return self.intent_id or self.event_id


kept_names = msgspec.json.Decoder(KeptNames).decode
"""The names in the stored bytes of an event."""


def key_of(stored: bytes) -> str:
    """The key of the rows of an event, given its stored bytes."""
    return kept_names(stored).key


def rows_of(key: str, seq: int | None, kept: KeptValues) -> list[KeptRow]:
    """The rows of a call, with fresh salts. Raises NotStorable for values that no call may keep."""
    check(kept)
    return [(key, one.pointer, seq, one.kind, one.text.encode(), os.urandom(SALT_BYTES)) for one in kept.values]


def check(kept: KeptValues) -> None:
    """Raise NotStorable for values that no call may keep: more or larger ones than any front reads."""
    pointers = {one.pointer for one in kept.values}
    if len(kept.values) > MAX_KEPT or len(pointers) != len(kept.values):
        raise NotStorable("more kept values than a call may have")
    for one in kept.values:
        if one.kind not in (KEPT, MASKED) or len(one.text.encode()) > MAX_VALUE_BYTES or not one.pointer:
            raise NotStorable("a kept value of an unknown kind, too large, or without a pointer")
        # SECURITY: sums are made of these texts later, by a notary that could not go on without one that it can't read.
        if not is_kept_text(one.text):
            raise NotStorable("a kept value that is no value of a request")


def commitments_of(rows: Iterable[KeptRow]) -> dict[str, str] | None:
    """Member `kept` of the event of these rows."""
    return {pointer: commitment(salt, value) for _, pointer, _, _, value, salt in rows} or None


def insert(connection: OpenTransaction, rows: Sequence[KeptRow], ends: Sequence[KeptEnd], *, is_file: bool) -> None:
    """Write rows of the journal to their table, and the numbers of events whose intents were opened before. `is_file`:
    of a SQLite file, which has values encrypted."""
    if is_file and rows:
        stored = encrypted_all(connection, [row[4:] for row in rows])
        rows = [(*row[:4], *one) for row, one in zip(rows, stored, strict=True)]
    opened = {row[0] for row in rows}
    seqs = dict(ends)
    if rows:
        connection.executemany(_INSERT, [(*row[:2], seqs.get(row[0], row[2]), *row[3:]) for row in rows])
    if late := [(seq, key) for key, seq in ends if key not in opened]:
        connection.executemany(_END, late)


def has_values(connection: OpenTransaction, last: int) -> bool:
    """True if values of events up to this number are not erased."""
    return connection.execute(_HAS_VALUES, (last,)).fetchone() is not None


def stored_values(connection: OpenTransaction, key: str) -> list[StoredValue]:
    """The rows of a call, with their values as they were kept."""
    opener = ValueOpener(connection)
    return [_stored(opener, *row) for row in connection.execute(_OF, (key,)).fetchall()]


def _stored(opener: ValueOpener, pointer: str, kind: str, value: Any, salt: Any, erased_by: int | None) -> StoredValue:
    if value is None:
        return StoredValue(pointer, kind, None, None, erased_by)
    kept, its_salt = opener.opened(value, salt) or (None, None)
    return StoredValue(pointer, kind, kept, its_salt, None)


def encrypt_plain(connection: OpenTransaction) -> None:
    """Write the table of a SQLite file of an earlier version anew, with its values encrypted. Inside the transaction
    that opens the file; does nothing where it is done, or there is no table yet."""
    if connection.execute(HAS_KEPT).fetchone() is None or (
        connection.execute(VALUE_KEYS.has_table).fetchone() is not None
        and connection.execute(_HAS_PLAIN).fetchone() is None
    ):
        return
    with written_anew(connection, "kept_values", TABLES) as before:
        rows = connection.execute(f"SELECT {COLUMNS} FROM {before} ORDER BY key, pointer")  # noqa: S608 - our names
        while some := rows.fetchmany(_CHUNK):
            plain = [row for row in some if row[4] is not None and number_of(row[4]) is None]
            stored = dict(
                zip([row[:2] for row in plain], encrypted_all(connection, [row[4:6] for row in plain]), strict=True)
            )
            connection.executemany(
                f"INSERT INTO kept_values ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - our names
                [(*row[:4], *stored.get(row[:2], row[4:6]), row[6]) for row in some],
            )
