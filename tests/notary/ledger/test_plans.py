"""Every query of the API on a ledger in PostgreSQL uses an index, at any size of the ledger."""

import re
from typing import Any

import pytest

from ipc.evidence.records import EventQuery, KeptFilter
from notary.backends.postgres.statements import Statements, translated
from notary.ledger import dead_letters, intents, outbox
from notary.ledger.postgres import OWN, prepare
from notary.operations import cutting, erasing, proving
from notary.reading import ends, following, queries, shown_kept
from notary.tree import tiles
from tests.support.postgres_server import PostgresServer

pytestmark = pytest.mark.large
EVENTS = 30_000
LARGE = ("events", "receipts", "intents", "tiles", "outbox", "kept_values")
FILL = (
    f"""INSERT INTO events SELECT n, 'evt_' || n, CASE WHEN n % 1000 = 0 THEN 'LeaseIssued' ELSE 'ActionCall' END, n,
    'trc_' || n / 2, 'uid:' || n % 50, 'ses_' || n / 20, 'act_' || n % 40,
    CASE WHEN n % 100 = 0 THEN 'deny' ELSE 'allow' END, '\\x00', n FROM generate_series(1, {EVENTS}) AS n""",
    f"""INSERT INTO receipts SELECT n, 'rcpt_' || n, CASE WHEN n % 100 = 0 THEN 'apr_' || n END, '\\x00'
    FROM generate_series(1, {EVENTS}) AS n""",
    f"""INSERT INTO intents SELECT n, 'intent_' || n, 'trc_' || n, 'a', 'p', '2026-11-23T00:00:00.000Z', 'g', 'm', 'h',
    CASE WHEN n % 100 = 0 THEN 'apr_' || n END, '', '\\x00', n FROM generate_series(1, {EVENTS}) AS n""",
    "INSERT INTO unresolved SELECT 'intent_' || n, n FROM generate_series(1, 20) AS n",
    f"INSERT INTO tiles SELECT 0, n, '\\x00' FROM generate_series(1, {EVENTS}) AS n",
    f"""INSERT INTO outbox (event_id, kind, endpoint, due, payload)
    SELECT 'evt_' || n, 'k', 'hook_' || n % 3, n, '{{}}' FROM generate_series(1, {EVENTS}) AS n""",
    """INSERT INTO given_up (event_id, kind, endpoint, attempts, at, error, payload)
    SELECT 'evt_' || n, 'k', 'hook_' || n % 3, 1, n, '', '' FROM generate_series(1, 10000) AS n""",
    f"""INSERT INTO kept_values
    SELECT 'intent_' || n, '/a', n, 'kept', convert_to(CAST(n % 5000 AS text), 'UTF8'), '\\x00'
    FROM generate_series(1, {EVENTS}) AS n""",
    "UPDATE kept_values SET value = NULL, salt = NULL, erased_by = seq WHERE seq % 3 = 0",
    "ANALYZE",
)  # fmt: skip
ASKED: dict[str, tuple[str, list[Any]]] = {
    **{
        f"events by {name}": queries.event_statement(EventQuery(**{name: value}))  # type: ignore[arg-type]
        for name, value in (
            ("trace_id", "trc_9"),
            ("session_id", "ses_9"),
            ("principal", "uid:9"),
            ("action_id", "act_9"),
            ("decision", "deny"),
            ("event_type", "LeaseIssued"),
            ("after", 5.0),
            ("limit", 100),
        )
    },
    "events by several": queries.event_statement(
        EventQuery(principal="uid:9", action_id="act_9", decision="deny", before=20.0)
    ),
    "events by kept values": queries.event_statement(EventQuery(kept=(KeptFilter("/a", "7"), KeptFilter("/b", "x")))),
    "events by common values": queries.event_statement(EventQuery(kept=(KeptFilter("/a", "7"),)), by_time=True),
    "kept values of events": (shown_kept._ROWS, [f"intent_{n}" for n in range(shown_kept._AT_ONCE)]),
    "events behind a place": (following._BEHIND, [29_000, 64]),
    "the common decision": queries.event_statement(EventQuery(decision="allow")),
    "an event": (proving._EVENT, ["evt_9"]),
    "an event by its number": (proving._EVENT_NUMBERED, [9]),
    "the event of a receipt": (proving._EVENT_OF_RECEIPT, ["rcpt_9"]),
    "the events of a trace": (proving._EVENTS_OF_TRACE, ["trc_9"]),
    "an intent": (proving._INTENT, ["intent_9"]),
    "the receipt of an event": (proving._RECEIPT, [9]),
    "is an intent known": ("SELECT 1 FROM intents WHERE intent_id = ?", ["intent_9"]),
    "which intents are known": (intents._KNOWN, ['["intent_9","x"]'] * 2),
    "an open intent": (intents._WAITING, ["intent_9"]),
    "a receipt": ("SELECT bytes FROM receipts WHERE receipt_id = ?", ["rcpt_9"]),
    "the receipt of an approval": ("SELECT receipt_id FROM receipts WHERE approval_id = ?", ["apr_100"]),
    "the intent of an approval": ("SELECT 1 FROM intents WHERE approval_id = ?", ["apr_100"]),
    "the newest event": ("SELECT max(time) FROM events", []),
    "the last event": (ends._LAST_EVENT, []),
    "the last epoch": (ends._LAST_RAISE, ["AdminRevokeAll"]),
    "values erased since a copy": (cutting._ERASED_SINCE, [EVENTS - 9, EVENTS]),
    "the events of a call": (erasing._OF_TRACE, ["trc_9", "uid:9", 0, 0]),
    "a tile": (tiles._READ, [0, 9]),
    "the last tile": (tiles._LAST, [0]),
    "deliveries that are due": (outbox.DUE, ["hook_1", 50, "hook_1", 9_000_000, 10]),
    "a delivery that is taken": (outbox.TAKE, [5, "[7]"]),
    "a delivery that is done": (outbox.FORGET, ['[[7,0,"evt_7"]]']),
    "the next delivery": ("SELECT min(due) FROM outbox WHERE endpoint = ?", ["hook_1"]),
    "dead letters": (dead_letters._CHOSEN.format(" AND error IN (?)"), ["hook_1", None, None, "", 5]),
}


@pytest.fixture(scope="module")
def filled(postgres_server: PostgresServer) -> tuple[PostgresServer, str]:
    """A ledger with so many of everything."""
    database = postgres_server.new_database()
    with postgres_server.connect(database) as connection:
        prepare(Statements(connection, OWN))  # type: ignore[arg-type]
        for statement in FILL:
            connection.execute(statement)
    return postgres_server, database


@pytest.mark.parametrize("name", ASKED)
def test_no_question_walks_a_whole_table(filled: tuple[PostgresServer, str], name: str) -> None:
    server, database = filled
    statement, values = ASKED[name]
    text = translated(OWN.get(statement, statement))
    plan = "\n".join(row[0] for row in server.ask(f"EXPLAIN {text}", *values, database=database))
    walked = set(re.findall(r"Seq Scan on (\w+)", plan)) & set(LARGE)
    assert not walked, plan
