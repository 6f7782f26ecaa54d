"""Ids of intents that are in sealed segments: a front that was taken over opens no call under one of them again.

Ids grow with time. So one row covers every id up to the newest that was sealed; an id that says a later time than its
call has, which only such a front makes, has a row of its own, and makes no id of others known. Functions of a
connection inside an open transaction.
"""

from collections.abc import Iterable
from typing import Final

from ipc.process.clock import parse_iso
from ipc.texts.identifiers import made_at
from notary.database import OpenTransaction

TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS sealed_intents (
        covers INTEGER NOT NULL, intent_id TEXT NOT NULL, PRIMARY KEY (covers, intent_id)
    ) STRICT, WITHOUT ROWID
    """,
)
POSTGRES_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS sealed_intents (
        covers bigint NOT NULL, intent_id text COLLATE "C" NOT NULL, PRIMARY KEY (covers, intent_id)
    )
    """,
)
KNOWN: Final = (
    "SELECT 1 FROM sealed_intents WHERE covers = 0 AND intent_id = ?"
    " UNION ALL SELECT 1 FROM sealed_intents WHERE covers = 1 AND intent_id >= ?"
)
"""A row for an id that is sealed."""
KNOWN_AMONG: Final = (
    "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM sealed_intents WHERE covers = 0 AND intent_id = value)"
    " OR EXISTS (SELECT 1 FROM sealed_intents WHERE covers = 1 AND intent_id >= value)"
)
"""Those of a list of ids that are sealed."""
_AHEAD_SECONDS: Final = 60.0
"""An id is made before its call is dispatched, by another process of this host."""
_PREFIX: Final = "intent_"
_COVERED: Final = "SELECT intent_id FROM sealed_intents WHERE covers = 1"
_UNCOVER: Final = "DELETE FROM sealed_intents WHERE covers = 1 AND intent_id < ?"
_ADD: Final = "INSERT INTO sealed_intents (covers, intent_id) VALUES (?, ?) ON CONFLICT (covers, intent_id) DO NOTHING"


def add(connection: OpenTransaction, rows: Iterable[tuple[str, str]]) -> None:
    """Intents are about to be deleted from their table: `intent_id` and `dispatched_at` of each."""
    row = connection.execute(_COVERED).fetchone()
    newest, others = "" if row is None else str(row[0]), []
    for intent_id, dispatched_at in rows:
        made = made_at(intent_id) if intent_id.startswith(_PREFIX) else None
        if made is not None and made <= parse_iso(dispatched_at) + _AHEAD_SECONDS:
            newest = max(newest, intent_id)
        else:
            others.append((0, intent_id))
    if newest:
        connection.execute(_UNCOVER, (newest,))
        others.append((1, newest))
    connection.executemany(_ADD, others)
