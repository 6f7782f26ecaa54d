"""PostgreSQL, registered as a server for the ledger."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ipc.backends.postgres_address import parse_postgres_url
from ipc.backends.servers import POSTGRESQL
from ipc.process.private_files import read_private, write_private
from ipc.settings import Settings
from ipc.walls.landlock import READ_FILES, WRITE_FILES, PathRule
from ipc.walls.places import homes
from notary.database import Database, DatabaseGone
from notary.servers.registration import LedgerServer

GATEWAY_ID: Final = "gateway-id"
"""The file in the state directory with the id of this gateway among those that share the ledger."""


def _places(settings: Settings) -> Iterator[PathRule]:
    ledger = settings.ledger
    address = parse_postgres_url(ledger.url or "")
    yield from homes((ledger.password_file,))
    if address.socket is not None:
        yield PathRule(address.socket, READ_FILES | WRITE_FILES)
    if ledger.ca_file is not None:
        yield PathRule(ledger.ca_file, READ_FILES)


def _look_up(settings: Settings) -> Any:
    from notary.backends.postgres.fitness import unreachable
    from notary.backends.postgres.place import PostgresTarget as PostgresPlace

    try:
        return PostgresPlace(settings.ledger)
    except OSError as error:
        raise DatabaseGone(unreachable(settings, str(error))) from error


def _problem(settings: Settings) -> str | None:
    from notary.backends.postgres.fitness import problem_of_postgres

    return problem_of_postgres(settings)


def _open(settings: Settings, place: Any) -> Database:
    from notary.backends.postgres.database import PostgresDatabase
    from notary.backends.postgres.fitness import refuse_unfit, unreachable
    from notary.ledger.postgres import OWN, prepare

    gateway_id = _gateway_id(Path(settings.state_dir) / GATEWAY_ID)
    database = PostgresDatabase(place, OWN, lambda line: refuse_unfit(settings, line), gateway_id)
    try:
        database.open(prepare)
    except DatabaseGone as error:
        raise DatabaseGone(unreachable(settings, str(error))) from error
    return database


def _gateway_id(file: Path) -> str:
    if not file.exists():
        write_private(file, f"{secrets.token_hex(16)}\n".encode())
    return read_private(file).decode().strip()


SERVER = LedgerServer(
    declared=POSTGRESQL, password_file=lambda settings: settings.ledger.password_file, places=_places,
    look_up=_look_up, problem=_problem, open=_open,
)  # fmt: skip
