"""Removes requests of ended approvals from a ledger of an earlier version, which kept them.

Pages of the table, of the journal's answers, and those that were free already are overwritten with zeros, inside the
transaction that brings the file to this version.
"""

from notary.database import OpenTransaction
from notary.ledger import page_ring
from notary.ledger.settling import settle
from notary.store import holds

_BEFORE = "approvals_of_before"
_ZEROS = 1 << 24
"""Bytes of one row that takes free pages, at most."""


def take_out(connection: OpenTransaction) -> None:
    """Make the table of approvals anew, without the requests of those that have ended. Raises DatabaseGone."""
    # The answers of an earlier version can go: its fronts are other programs, and ask this one for none.
    contents = page_ring.read(connection)
    settle(connection, contents.entries, contents.last)
    connection.execute("PRAGMA secure_delete=ON").fetchall()
    connection.execute("DELETE FROM journal")
    connection.execute("DELETE FROM last_unit WHERE instr(answers, CAST('\"plan_hash\"' AS BLOB)) > 0")
    for (index,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'approvals' AND sql IS NOT NULL"
    ).fetchall():
        connection.execute(f"DROP INDEX {index}")
    connection.execute(f"ALTER TABLE approvals RENAME TO {_BEFORE}")
    for statement in holds.TABLES:
        connection.execute(statement)
    holds.bring(connection, _BEFORE)
    connection.execute(f"DROP TABLE {_BEFORE}")
    connection.execute("PRAGMA secure_delete=OFF").fetchall()


def overwrite_free(connection: OpenTransaction) -> None:
    """Take every free page, and give it back: what is given back is overwritten."""
    connection.execute("PRAGMA secure_delete=ON").fetchall()
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("CREATE TABLE zeros (bytes BLOB)")
    many, rest = divmod(free * page, _ZEROS)
    for size in (*[_ZEROS] * many, rest):
        connection.execute("INSERT INTO zeros VALUES (zeroblob(?))", (size,))
    connection.execute("DROP TABLE zeros")
