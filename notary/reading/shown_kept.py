"""Kept values of events as operators are shown them, and the search by them.

The stored bytes of an event never change: two members, `kept_state` and `kept_values`, come behind its last one. A
value is shown only if it is the one that the event commits to. Functions of a connection that can't write.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from contract.audit import KeptState
from ipc.evidence.kept_values import commitment, texts_of
from ipc.evidence.records import KeptFilter
from ipc.operations.evidence import MAX_SHOWN_BYTES
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger.encrypted_values import FOUND_BY_BYTES, LivingKeys, ValueOpener, found_by
from notary.ledger.kept_values import KeptNames, kept_names

_AT_ONCE: Final = 32
"""Events whose rows one question asks for."""
_MARK: Final = b'"kept":{'
_ROWS: Final = f"""
SELECT key, pointer, value, salt, erased_by FROM kept_values WHERE key IN ({", ".join("?" * _AT_ONCE)})
"""  # noqa: S608 - text of this file
_SOUGHT: Final = f"""
(WITH RECURSIVE places (place) AS (
    SELECT 1 UNION ALL SELECT place + {FOUND_BY_BYTES} FROM places WHERE place + {FOUND_BY_BYTES} < length(?)
) SELECT substr(?, place, {FOUND_BY_BYTES}) FROM places)
"""  # noqa: S608 - a number
"""The parts of a bytes value, given twice: more of them than a statement may have values."""
FROM_VALUES: Final = "kept_values INDEXED BY kept_values_by_value CROSS JOIN events USING (seq)"
"""The source of events with a kept value: SQLite begins with the index of values."""
_HAS_VALUE: Final = "kept_values.kind = 'kept' AND kept_values.pointer = ?"
_OTHER: Final = "EXISTS (SELECT 1 FROM kept_values AS other"
_OF_CALL: Final = f"{_OTHER} WHERE other.key = kept_values.key AND other.kind = 'kept'"
_OF_EVENT: Final = f"{_OTHER} INDEXED BY kept_values_by_seq WHERE other.seq = events.seq AND other.kind = 'kept'"
_SOME: Final = "SELECT 1 FROM kept_values INDEXED BY kept_values_by_value"
COMMON: Final = 2000
"""Calls that keep a value. Events with a more common one are looked for by time: all that keep it would be too many."""


def with_kept(connection: OpenTransaction, events: Sequence[bytes]) -> list[bytes]:
    """The stored events, each that commits to values with these values as they are known now.

    Ends early where they are more than MAX_SHOWN_BYTES: behind the first event at least.
    """
    shown: list[bytes] = []
    size = 0
    opener = ValueOpener(connection)
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        read = [_read(stored) for stored in some]
        rows = _rows_of(connection, [one.key for one in read if one is not None], opener)
        for stored, one in zip(some, read, strict=True):
            if one is not None:
                stored = stored[:-1] + b"," + _members(one.kept or {}, rows.get(one.key, {}))[1:]
            size += len(stored)
            if shown and size > MAX_SHOWN_BYTES:
                return shown
            shown.append(stored)
    return shown


def kept_terms(
    filters: Sequence[KeptFilter], keys: LivingKeys = (), *, by_time: bool = False
) -> tuple[list[str], list[Any]]:  # fmt: skip
    """SQL terms for events that keep these values, and the values of the terms. `keys`: those that the ledger's values
    are encrypted with; none where they are not.

    The events come from FROM_VALUES, by the first of the values, or, `by_time`, from their own table.
    """
    terms, values = [], list[Any]()
    for number, one in enumerate(filters):
        places, sought = _sought(one, keys)
        if by_time:
            terms.append(f"{_OF_EVENT} AND other.pointer = ? AND other.value IN {places})")
        elif number == 0:
            terms.append(f"{_HAS_VALUE} AND kept_values.value IN {places}")
        else:
            terms.append(f"{_OF_CALL} AND other.pointer = ? AND other.value IN {places})")
        values += [one.pointer, *sought]
    return terms, values


def rarest_first(
    connection: OpenTransaction, filters: Sequence[KeptFilter], keys: LivingKeys
) -> tuple[list[KeptFilter], bool]:  # fmt: skip
    """The filters, that of the rarest value first, and True if more than COMMON calls keep even this one."""
    counts = {one: _count(connection, one, keys) for one in filters}
    ordered = sorted(filters, key=counts.__getitem__)
    return ordered, counts[ordered[0]] > COMMON


def _count(connection: OpenTransaction, one: KeptFilter, keys: LivingKeys) -> int:
    places, sought = _sought(one, keys)
    statement = f"SELECT count(*) FROM ({_SOME} WHERE {_HAS_VALUE} AND value IN {places} LIMIT ?) AS some_values"  # noqa: S608
    return int(connection.execute(statement, (one.pointer, *sought, COMMON + 1)).fetchone()[0])


def _sought(one: KeptFilter, keys: LivingKeys) -> tuple[str, list[bytes]]:
    """The right side of IN for rows with this value, and its values."""
    texts = [text.encode() for text in texts_of(one.value)]
    if not keys:
        return f"({', '.join('?' * len(texts))})", texts
    return _SOUGHT, [b"".join(found_by(*key, text) for key in keys for text in texts)] * 2


def _read(stored: bytes) -> KeptNames | None:
    """The names and commitments of an event; None if it has none."""
    if _MARK not in stored:
        return None
    try:
        read = kept_names(stored)
    except msgspec.MsgspecError as error:
        raise DatabaseGone(f"a stored event makes no sense: {error}") from None
    return read if read.kept else None


def _rows_of(
    connection: OpenTransaction, keys: list[str], opener: ValueOpener
) -> dict[str, dict[str, tuple[Any, ...]]]:  # fmt: skip
    """key -> pointer -> value, salt and number of the event that erased them. Values that can't be read are left
    out."""
    rows: dict[str, dict[str, tuple[Any, ...]]] = {}
    if keys:
        padded = keys + keys[-1:] * (_AT_ONCE - len(keys))
        for key, pointer, value, salt, erased_by in connection.execute(_ROWS, padded).fetchall():
            if value is None:
                rows.setdefault(key, {})[pointer] = (None, None, erased_by)
            elif (opened := opener.opened(value, salt)) is not None:
                rows.setdefault(key, {})[pointer] = (*opened, erased_by)
    return rows


def _members(kept: dict[str, str], rows: dict[str, tuple[Any, ...]]) -> bytes:
    """Both members of an event, as an object."""
    values, states = dict[str, Any](), set[KeptState]()
    for pointer, committed in kept.items():
        value, salt, erased_by = rows.get(pointer, (None, None, None))
        values[pointer] = None
        if value is None and erased_by is not None:
            states.add("erased")
        elif value is None or commitment(salt, value) != committed:
            states.add("missing")
        else:
            values[pointer] = msgspec.Raw(value)
    state: KeptState = "missing" if "missing" in states else "erased" if states else "whole"
    return msgspec.json.encode({"kept_state": state, "kept_values": values})
