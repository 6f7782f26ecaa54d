"""Checks whether a PostgreSQL is fit to hold evidence.

Source: docs/operations.md, "PostgreSQL". Weak settings are refused outside dev mode only.
"""

from typing import Any, Final, NamedTuple

import psycopg

from ipc.process.logs import log
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings
from notary.backends.postgres.place import PostgresConnection, PostgresTarget, said_of
from notary.database import DatabaseGone

OLDEST: Final = 140_000
_ASKED: Final = (
    "server_version_num", "server_encoding", "transaction_read_only", "synchronous_commit", "fsync", "full_page_writes",
)  # fmt: skip
_QUESTION: Final = f"SELECT pg_is_in_recovery(), {', '.join(f'current_setting({name!r})' for name in _ASKED)}"


class PostgresFitness(NamedTuple):
    """Faults in every mode, and faults outside dev mode."""

    wrong: list[str]
    weak: list[str]


def judge(line: PostgresConnection) -> PostgresFitness:
    """Raises psycopg.Error."""
    line.hurry()
    is_copy, version, encoding, read_only, commit, fsync, pages = line.execute(_QUESTION).fetchone() or (
        None,
        0,
        *[None] * 5,
    )
    wrong, weak = list[str](), list[str]()
    if not str(version).isdigit() or int(version) < OLDEST:
        wrong.append(f"PostgreSQL of number {version} is too old: 14 or later is needed.")
    if is_copy is not False:
        wrong.append("This PostgreSQL is a standby, which takes no writes: name its primary.")
    elif read_only != "off":
        wrong.append("It takes no writes: default_transaction_read_only is on for this user or database.")
    if encoding != "UTF8":
        wrong.append(f"Its database has the encoding {encoding}: make one with UTF8.")
    if commit == "off":
        wrong.append("Its synchronous_commit is off, and what was answered could be lost: set it on.")
    if fsync != "on":
        weak.append("Its fsync is off, and a crash of its machine loses the ledger: set it on.")
    if pages != "on":
        weak.append("Its full_page_writes is off, and a crash of its machine may tear pages: set it on.")
    return PostgresFitness(wrong, weak)


def refuse_unfit(settings: Settings, line: PostgresConnection) -> None:
    """Raises DatabaseGone with sentences, psycopg.Error."""
    problems = judge(line)
    if refused := problems.wrong or ([] if settings.dev_mode else problems.weak):
        raise DatabaseGone(" ".join(refused))
    for sentence in problems.weak:
        log.warning("the PostgreSQL of the ledger is weak", reason=sentence)


def problem_of_postgres(settings: Settings) -> str | None:
    """Why the configured PostgreSQL can't be used, one sentence or more; None where it can, or where none is
    configured."""
    if settings.ledger.url is None:
        return None
    try:
        line: Any = PostgresTarget(settings.ledger).connect()
        try:
            problems = judge(line)
        finally:
            line.close()
    except (psycopg.Error, OSError, ValueError, PrivateFileError) as error:
        return unreachable(settings, said_of(error) if isinstance(error, psycopg.Error) else str(error))
    return " ".join(problems.wrong or ([] if settings.dev_mode else problems.weak)) or None


def unreachable(settings: Settings, cause: str) -> str:
    """For people; the address has no password."""
    return f"ledger.url = {settings.ledger.url!r}: can't be used: {cause.removesuffix('.')}."
