"""Tables of the gateway's one SQLite file.

A call writes the journal (notary/ledger/page_ring.py); its rows come to these tables a little later, many at a time.

An event is stored as the exact bytes that were hashed; the columns beside it exist to filter and nothing else. Every
index grows at its end or at one place for each value, so that a large ledger costs no more to write than a small one.
"""

import secrets
from collections.abc import Iterable

from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import (
    activity,
    activity_sums,
    history,
    kept_values,
    lease_tokens,
    page_ring,
    requests,
    sealed_intents,
)
from notary.store import budgets, cap_rows, continued, holds, kept, keyed_calls, proofs, quotas, standing
from notary.store.own_pages import move_to_own_pages
from notary.tree import tiles

SCHEMA_VERSION = "6"
WITHOUT_TREE = ("1", "2", "3", "4")
KNOWN_VERSIONS = (*WITHOUT_TREE, "5", SCHEMA_VERSION)
"""Versions that can be checked."""

HAS_META = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
PLANTED = """
    SELECT lower(replace(substr(sql, 8, instr(substr(sql, 8), ' ') - 1), 'VIRTUAL', 'virtual table')), name
    FROM sqlite_master WHERE sql IS NOT NULL
    AND NOT (sql LIKE 'CREATE TABLE %' OR sql LIKE 'CREATE INDEX %' OR sql LIKE 'CREATE UNIQUE INDEX %')
    UNION ALL SELECT 'generated column', tables.name || '.' || columns.name
    FROM sqlite_master AS tables JOIN pragma_table_xinfo(tables.name) AS columns
    WHERE tables.sql LIKE 'CREATE TABLE %' AND columns.hidden > 1
    LIMIT 1
"""
"""SECURITY: shapes that compute something when they are read. SQLite goes by `sql`, whatever `type` says."""
INTEGRITY = "PRAGMA integrity_check(1)"
"""Whether the database's own structure is whole."""

_EVIDENCE = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, event_type TEXT NOT NULL, time INTEGER NOT NULL, trace_id TEXT,
    principal TEXT, session_id TEXT, action_id TEXT, decision TEXT, bytes BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_time ON events (time);
CREATE INDEX events_by_trace ON events (trace_id, time);
CREATE INDEX events_by_session ON events (session_id, time);
CREATE INDEX events_by_principal ON events (principal, time);
CREATE INDEX events_by_action ON events (action_id, time);
-- What is common is found by time soon enough; only what is rare is worth an index here.
CREATE INDEX events_by_decision ON events (decision, time) WHERE decision <> 'allow';
CREATE INDEX events_by_type ON events (event_type, time) WHERE event_type <> 'ActionCall';

-- seq is that of the event that names the receipt.
CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY, receipt_id TEXT NOT NULL UNIQUE, approval_id TEXT, bytes BLOB NOT NULL
) STRICT;
CREATE INDEX receipts_by_approval ON receipts (approval_id) WHERE approval_id IS NOT NULL;

CREATE TABLE intents (
    seq INTEGER PRIMARY KEY, intent_id TEXT NOT NULL, trace_id TEXT NOT NULL, action_id TEXT NOT NULL,
    principal TEXT NOT NULL, dispatched_at TEXT NOT NULL, grant_id TEXT NOT NULL, provider_module TEXT NOT NULL,
    plan_hash TEXT NOT NULL, approval_id TEXT, grant_jws TEXT, context BLOB
) STRICT;
-- Ids grow with time (ipc/texts/identifiers.py): this index, too, grows at its end.
CREATE UNIQUE INDEX intents_by_id ON intents (intent_id);
CREATE INDEX intents_by_approval ON intents (approval_id) WHERE approval_id IS NOT NULL;

-- Intents stay as they were written; this small table says which of them wait for a receipt.
CREATE TABLE unresolved (intent_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

_OUTBOX = """
-- attempts counts the claims; due is when the next one may be, in milliseconds. The payload is last: what is compared
-- and changed is found without reading it.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, kind TEXT NOT NULL, endpoint TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, due INTEGER NOT NULL, payload TEXT NOT NULL
) STRICT;
-- SQLite ends each entry of an index with seq.
CREATE INDEX outbox_by_due ON outbox (endpoint, due);

-- seq is the order in which deliveries were given up, and no number of the outbox.
CREATE TABLE given_up (
    seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, kind TEXT NOT NULL, endpoint TEXT NOT NULL,
    attempts INTEGER NOT NULL, at INTEGER NOT NULL, error TEXT NOT NULL, payload TEXT NOT NULL
) STRICT;
"""


_MORE_OF_INTENTS = """
ALTER TABLE intents ADD COLUMN grant_jws TEXT;
ALTER TABLE intents ADD COLUMN context BLOB;
CREATE UNIQUE INDEX intents_by_id ON intents (intent_id);
"""

_TREE = """
-- leaf is the place in the tree (notary/tree); NULL for what was written before there was one.
ALTER TABLE events ADD COLUMN leaf INTEGER;
ALTER TABLE intents ADD COLUMN leaf INTEGER;
-- Ids grow with time.
CREATE INDEX events_by_id ON events (event_id);
-- size is how many leaves the note (notary/tree/checkpoints.py) commits to.
CREATE TABLE checkpoints (size INTEGER PRIMARY KEY, time TEXT NOT NULL, note TEXT NOT NULL) STRICT;
"""

_LAST_UNIT = """
-- What the last unit answered, where that is too much for the journal: whoever did not hear it asks again.
CREATE TABLE last_unit (id INTEGER PRIMARY KEY CHECK (id = 1), answers BLOB NOT NULL) STRICT;
"""
_IN_OWN_PAGES = (
    ("approvals", holds.TABLES),
    ("kept_approvals", kept.TABLES),
    ("kept_outputs", keyed_calls.OUTPUTS.tables),
)


def prepare(connection: OpenTransaction) -> None:
    """Create the tables in an empty file, or check that this is one that we know; one of an earlier version is brought
    to this one. Inside the transaction that is open. Raises DatabaseGone."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables == 0:
        _execute_all(connection, _EVIDENCE + _OUTBOX + _LAST_UNIT)
        _create_store(connection)
        rows = [("schema", SCHEMA_VERSION), ("ledger_id", secrets.token_hex(16)), ("head", "{}")]
        connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", rows)
        _create(connection, page_ring.TABLES)
        _create(connection, quotas.TABLES)
        _create_tree(connection)
        lease_tokens.mark_new(connection)
    if (name := planted(connection)) is not None:
        raise DatabaseGone(f"it has a {name}, which no gateway makes: it would change what is written")
    version = schema_version(connection)
    if version in ("3", "4", "5"):
        requests.overwrite_free(connection)  # before anything takes these pages
    if version == "1":
        # Its outbox had no endpoints, and nothing ever wrote to it.
        _execute_all(connection, "DROP TABLE outbox;\n" + _OUTBOX)
    if version in ("1", "2"):
        _execute_all(connection, _MORE_OF_INTENTS + _LAST_UNIT)
        _create_store(connection)
    if version in ("1", "2", "3"):
        _create(connection, page_ring.TABLES)
    if version in WITHOUT_TREE:
        _create_tree(connection)
    if version in ("3", "4", "5"):
        requests.take_out(connection)
    if version != SCHEMA_VERSION and version in KNOWN_VERSIONS:
        _create(connection, quotas.TABLES)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema'", (SCHEMA_VERSION,))
    elif version != SCHEMA_VERSION:
        raise DatabaseGone(f"not a ledger of this version: its schema is {version}, known is {SCHEMA_VERSION}")
    lease_tokens.take_out_tokens(connection)
    for table, statements in _IN_OWN_PAGES:
        move_to_own_pages(connection, table, statements)
    kept_values.encrypt_plain(connection)
    activity_sums.encrypt_plain_sums(connection)
    own = (*continued.TABLES, *kept.TABLES, *cap_rows.TABLES, *keyed_calls.TABLES, *standing.TABLES)
    _create(connection, (*own, *kept_values.TABLES, *activity.TABLES, *sealed_intents.TABLES))


def _create_tree(connection: OpenTransaction) -> None:
    _execute_all(connection, _TREE)
    connection.execute(tiles.TABLE)
    history.bring(connection)


def _create_store(connection: OpenTransaction) -> None:
    _create(connection, (*proofs.TABLES, *budgets.TABLES, *holds.TABLES))


def _create(connection: OpenTransaction, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)


def _execute_all(connection: OpenTransaction, statements: str) -> None:
    """One by one: a whole script would commit first."""
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)


def planted(connection: OpenTransaction) -> str | None:
    """A trigger, view, virtual table or generated column in the file, which could change rows as they are written or
    read, or never end: kind and name. To be asked before any table is read."""
    row = connection.execute(PLANTED).fetchone()
    return None if row is None else f"{row[0]} {row[1]}"


def schema_version(connection: OpenTransaction) -> str | None:
    """The version of a ledger; None for another file."""
    if connection.execute(HAS_META).fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return None if row is None else str(row[0])
