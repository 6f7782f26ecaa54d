"""Exact sums of kept numbers by hour and by day: of the calls of an action that were executed, by JSON pointer.

A value that is erased leaves the sums before its row does: the sum of a single call would tell it, and so would the
difference of two. So a SQLite file has the sums of an hour, and of a day, encrypted with a key of their own
(notary/ledger/key_pages.py), and they get another one then. It is stored as the number of its key, a colon, and base64.
Functions of a connection inside an open transaction.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any, Final

from ipc.evidence.events import ACTION_CALL, APPROVAL_GRANTED
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.encrypted_values import ValueOpener
from notary.ledger.key_pages import KeyPages, KeyReader, decrypted, encrypted
from notary.store.own_pages import written_anew

HOUR_MS: Final = 3_600_000
STEPS: Final = (1, 24)
"""Hours of a step: counts and sums are kept by hour and by day."""
SUM_KEYS: Final = KeyPages("activity_keys")
TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity_sums (
        step INTEGER NOT NULL, hour INTEGER NOT NULL, action_id TEXT NOT NULL, pointer TEXT NOT NULL, sum TEXT NOT NULL,
        PRIMARY KEY (step, hour, action_id, pointer)
    ) STRICT, WITHOUT ROWID
    """,
    *SUM_KEYS.tables,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS activity_sums (
        step bigint NOT NULL, hour bigint NOT NULL, action_id text COLLATE "C" NOT NULL,
        pointer text COLLATE "C" NOT NULL, sum text NOT NULL, PRIMARY KEY (step, hour, action_id, pointer)
    )
    """,
)
_VALUES: Final = (
    "SELECT events.time, events.event_type, events.decision, events.action_id, pointer, value, salt"
    " FROM kept_values CROSS JOIN events ON events.seq = kept_values.seq"
    " WHERE kept_values.value IS NOT NULL AND kept_values.kind = 'kept'"
)
_BETWEEN: Final = f"{_VALUES} AND kept_values.seq > ? AND kept_values.seq <= ?"
_OF: Final = f"{_VALUES} AND kept_values.key = ? AND kept_values.seq <= ?"
_STORED: Final = "SELECT action_id, pointer, sum FROM activity_sums WHERE step = ? AND hour = ?"
_OF_SPAN: Final = f"{_STORED} AND action_id = ? AND pointer = ?"
_SET: Final = (
    "INSERT INTO activity_sums (step, hour, action_id, pointer, sum) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (step, hour, action_id, pointer) DO UPDATE SET sum = excluded.sum"
)
_REMOVE: Final = "DELETE FROM activity_sums WHERE step = ? AND hour = ? AND action_id = ? AND pointer = ?"
_BEFORE: Final = "SELECT sum FROM activity_sums WHERE step = ? AND hour < ?"
_FORGET: Final = "DELETE FROM activity_sums WHERE step = ? AND hour < ?"
_HAS_SUMS: Final = "SELECT 1 FROM sqlite_master WHERE name = 'activity_sums'"
_EXECUTED: Final = frozenset({ACTION_CALL, APPROVAL_GRANTED})
EXACT: Final = Context(prec=1000)
"""More digits than the sum of any two JSON numbers has: these are doubles (RFC 8785)."""


Span = tuple[int, int]
"""A step, and the first hour of it."""
SpanSums = dict[tuple[str, str], Decimal]
"""(action id, pointer) -> sum."""


class SumReader:
    """Reads stored sums within one transaction."""

    def __init__(self, connection: OpenTransaction) -> None:
        self._keys = KeyReader(SUM_KEYS, connection)

    def opened(self, stored: str) -> Decimal | None:
        """The sum; None if it can't be read."""
        number = _number_of(stored)
        if number is None:
            return Decimal(stored)
        cipher = self._keys.cipher(number)
        try:
            content = None if cipher is None else decrypted(cipher, b64decode(stored.partition(":")[2], validate=True))
        except ValueError:
            return None
        return None if content is None else Decimal(content.decode())

    def has_key(self, number: int) -> bool:
        """True if the key of this number is there."""
        return self._keys.key(number) is not None


def add_between(connection: OpenTransaction, after: int, last: int, *, is_file: bool) -> None:
    """Add the values of events after this number, up to that one."""
    for span, changes in _changes(_values(connection, _BETWEEN, after, last)).items():
        _add(connection, span, changes, is_file=is_file)


def take_out(connection: OpenTransaction, keys: Iterable[str], last: int, *, is_file: bool) -> None:
    """Subtract the values of the rows with these keys, as far as those of events up to this number were added.

    SECURITY: no copy of an earlier sum can be read afterwards.
    """
    rows = [row for key in keys for row in _values(connection, _OF, key, last)]
    for span, changes in _changes(rows).items():
        _subtract(connection, span, changes, is_file=is_file)


def forget_before(connection: OpenTransaction, hour: int) -> bool:
    """Remove the sums of earlier hours and days, and their keys. True if there were keys."""
    numbers = set[int]()
    for step in STEPS:
        numbers |= _numbers(row[0] for row in connection.execute(_BEFORE, (step, hour)))
        connection.execute(_FORGET, (step, hour))
    SUM_KEYS.drop(connection, numbers)
    return bool(numbers)


def encrypt_plain_sums(connection: OpenTransaction) -> None:
    """Write the table of a SQLite file of an earlier version anew, with its sums encrypted. Inside the transaction that
    opens the file; does nothing where it is done, or there is no table yet."""
    is_old = connection.execute(SUM_KEYS.has_table).fetchone() is None
    if not is_old or connection.execute(_HAS_SUMS).fetchone() is None:
        return
    with written_anew(connection, "activity_sums", TABLES) as before:
        spans = connection.execute(f"SELECT DISTINCT step, hour FROM {before}").fetchall()  # noqa: S608 - our name
        for span in spans:
            rows = connection.execute(_STORED.replace("activity_sums", before), span).fetchall()
            sums = {(action_id, pointer): Decimal(total) for action_id, pointer, total in rows}
            _write(connection, span, sums, SUM_KEYS.make(connection))


def _values(connection: OpenTransaction, statement: str, first: int | str, last: int) -> list[Sequence[Any]]:
    """Rows of _VALUES with their values as they were kept, without those that can't be read."""
    opener = ValueOpener(connection)
    rows = connection.execute(statement, (first, last)).fetchall()
    return [(*row[:5], one[0]) for row in rows if (one := opener.opened(*row[5:])) is not None]


def _changes(rows: Iterable[Sequence[Any]]) -> dict[Span, SpanSums]:
    """The sums of these values by span."""
    changes: dict[Span, SpanSums] = {}
    for time, event_type, decision, action_id, pointer, value in rows:
        text = value.decode()
        if event_type not in _EXECUTED or decision != "allow" or not action_id or text[:1] not in "-0123456789":
            continue
        for step in STEPS:
            sums = changes.setdefault((step, int(time) // HOUR_MS // step * step), {})
            sums[action_id, pointer] = EXACT.add(sums.get((action_id, pointer), Decimal(0)), Decimal(text))
    return changes


def _add(connection: OpenTransaction, span: Span, changes: SpanSums, *, is_file: bool) -> None:
    reader, sums = SumReader(connection), SpanSums()
    for name, change in changes.items():
        row = connection.execute(_OF_SPAN, (*span, *name)).fetchone()
        sums[name] = EXACT.add(change, (row and reader.opened(row[2])) or Decimal(0))
    number = None
    if is_file:
        row = connection.execute(f"{_STORED} LIMIT 1", span).fetchone()
        number = None if row is None else _number_of(row[2])
        if number is None or not reader.has_key(number):
            number = SUM_KEYS.make(connection)
    _write(connection, span, sums, number)


def _subtract(connection: OpenTransaction, span: Span, changes: SpanSums, *, is_file: bool) -> None:
    rows, reader, sums = connection.execute(_STORED, span).fetchall(), SumReader(connection), SpanSums()
    for action_id, pointer, stored in rows:
        if (total := reader.opened(stored)) is not None:
            sums[action_id, pointer] = EXACT.subtract(total, changes.get((action_id, pointer), Decimal(0)))
    gone = [name for name in changes if not sums.get(name)]
    connection.executemany(_REMOVE, [(*span, *name) for name in gone])
    left = {name: total for name, total in sums.items() if name not in gone}
    _write(connection, span, left, SUM_KEYS.make(connection) if is_file and left else None)
    SUM_KEYS.drop(connection, _numbers(row[2] for row in rows))


def _write(connection: OpenTransaction, span: Span, sums: SpanSums, number: int | None) -> None:
    """Write sums of a span, encrypted with the key of this number if there is one."""
    texts = {name: format(total, "f") for name, total in sums.items()}
    if number is not None:
        cipher = KeyReader(SUM_KEYS, connection).cipher(number)
        if cipher is None:
            raise DatabaseGone("a key of sums is gone that was just there")
        texts = {
            name: f"{number}:{b64encode(encrypted(cipher, text.encode())).decode()}" for name, text in texts.items()
        }
    connection.executemany(_SET, [(*span, *name, text) for name, text in texts.items()])


def _number_of(stored: str) -> int | None:
    """The number of the key of a stored sum; None where it stands as it is."""
    number, colon, _ = stored.partition(":")
    return int(number) if colon and number.isascii() and number.isdecimal() else None


def _numbers(stored: Iterable[str]) -> set[int]:
    return {number for one in stored if (number := _number_of(one)) is not None}
