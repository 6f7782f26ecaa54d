"""Statements of the ledger as PostgreSQL takes them: the ledger speaks SQLite's dialect.

Differences in form are rewritten by rule; statements that differ in substance are listed by the ledger
(notary/ledger/postgres.py). Guarantees that values stay values: a statement is one of our own texts, and every value is
a parameter.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from notary.backends.postgres.place import PostgresConnection
from notary.database import Rows

_RULES: Final = tuple((re.compile(pattern), form) for pattern, form in (
    (r"%", "%%"),
    (r" INDEXED BY \w+", ""),
    # CROSS tells SQLite which table to begin with.
    (r"\bCROSS JOIN\b", "JOIN"),
    (r"\bFROM json_each\(\?\)", "FROM json_array_elements_text(CAST(? AS json)) AS named(value)"),
    (r"json_extract\(CAST\(([\w.]+) AS TEXT\), '\$\.(\w+)'\)", r"(CAST(convert_from(\1, 'UTF8') AS json) ->> '\2')"),
    (r"\bCAST\((\w+) AS BLOB\)", r"\1"),
    (r"= max\((\w+), \?\)", r"= greatest(\1, ?)"),
))  # fmt: skip
_REPLACE: Final = re.compile(r"INSERT OR REPLACE INTO (\w+) \((\w+), ([\w, ]+)\) VALUES (\(.*\))\s*$", re.DOTALL)


@lru_cache(maxsize=512)
def translated(statement: str) -> str:
    """The text with `%s` for values."""
    if match := _REPLACE.match(statement):
        table, key, others, values = match.groups()
        news = ", ".join(f"{name} = excluded.{name}" for name in others.split(", "))
        statement = f"INSERT INTO {table} ({key}, {others}) VALUES {values} ON CONFLICT ({key}) DO UPDATE SET {news}"  # noqa: S608
    for pattern, form in _RULES:
        statement = pattern.sub(form, statement)
    return statement.replace("?", "%s")


class Statements:
    """The transaction that is open on one line: a Connection (notary/database.py). Raises psycopg.Error."""

    def __init__(self, line: PostgresConnection, own: Mapping[str, str]) -> None:
        """`own`: what is said otherwise here, by what is said elsewhere."""
        self._line = line
        self._own = own

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows:
        """Send one statement. The wait for its answer begins when it is read."""
        cursor = self._line.cursor(binary=True)
        return cursor.execute(translated(self._own.get(statement, statement)), values)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """The same statement with each of these rows."""
        cursor = self._line.cursor()
        cursor.executemany(translated(self._own.get(statement, statement)), rows)
        return cursor
