"""The ledger's record of a store outside of it."""

from notary.backends.sqlite import SqliteDatabase
from notary.store.in_ledger import SqliteStore
from notary.store.marker import keep_marker, read_marker


def test_the_marker_stays_until_the_store_lies_in_the_ledger_again(database: SqliteDatabase) -> None:
    with database.unit() as connection:
        assert read_marker(connection) is None
        for marker in ("first", "second"):
            keep_marker(connection, marker)
            assert read_marker(connection) == marker
    with database.unit() as connection:
        held = connection.execute("SELECT value FROM meta WHERE key = 'store_marker'").fetchall()
        assert held == [("second",)], "ledgers that are there have it under this name"
        SqliteStore(connection).renew(0)
        assert read_marker(connection) is None
