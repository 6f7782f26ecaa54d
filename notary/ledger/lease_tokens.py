"""Overwrites lease tokens that an earlier version left in the ledger's file, in its remembered answers.

Tokens lay in pages of the journal, in the answers of a large unit, and in pages that were free. In PostgreSQL they lay
in the rows of gateways.
"""

from notary.database import OpenTransaction
from notary.ledger import page_ring, requests
from notary.ledger.settling import settle

_MARK = "answers_without_tokens"
_NAME = b"lease_jwt"
"""The field of an answer that held a token."""
_NO_ANSWERS = b"\x90"


def take_out_tokens(connection: OpenTransaction) -> None:
    """Once for each file, inside the transaction that opens it. Raises DatabaseGone."""
    if connection.execute("SELECT 1 FROM meta WHERE key = ?", (_MARK,)).fetchone() is None:
        requests.overwrite_free(connection)
        # The answers of an earlier version can go: its fronts are other programs, and ask this one for none.
        contents = page_ring.read(connection)
        settle(connection, contents.entries, contents.last)
        connection.execute("DELETE FROM journal")
        connection.execute("DELETE FROM last_unit WHERE instr(answers, ?) > 0", (_NAME,))
        connection.execute("PRAGMA secure_delete=OFF").fetchall()
        mark_new(connection)


def mark_new(connection: OpenTransaction) -> None:
    """This file never held a token."""
    connection.execute("INSERT INTO meta (key, value) VALUES (?, '1')", (_MARK,))


def take_out_of_gateways(connection: OpenTransaction) -> None:
    """The same in a shared ledger, at each start."""
    connection.execute(
        "UPDATE gateways SET answers = ? WHERE position(CAST(? AS bytea) IN answers) > 0", (_NO_ANSWERS, _NAME)
    )
