"""Where the backends of a notary are: their names are looked up before its walls stand, behind which none can be.

Also opens the PostgreSQL of a ledger. What belongs to a backend is imported only where one is configured.
"""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ipc.private_files import read_private, write_private
from ipc.settings import Settings
from notary.database import Database, DatabaseGone
from notary.store.contract import StoreGone

if TYPE_CHECKING:  # each client takes half a second to import, and most notaries have none
    from notary.backends.postgres.place import Place as PostgresPlace
    from notary.backends.redis.client import Place as RedisPlace

GATEWAY_ID: Final = "gateway-id"
"""In the state directory: which of the gateways of a shared ledger this is."""


class Places(NamedTuple):
    """None where no such backend is configured, or nothing was looked up yet."""

    redis: "RedisPlace | None" = None
    postgres: "PostgresPlace | None" = None


NOT_LOOKED_UP: Final = Places()


def look_up(settings: Settings) -> Places:
    """Everything that is configured. Raises StoreGone, DatabaseGone, ValueError."""
    return Places(redis_place(settings), postgres_place(settings))


def redis_place(settings: Settings) -> "RedisPlace | None":
    """Raises StoreGone, ValueError."""
    if settings.store.redis_url is None:
        return None
    from notary.backends.redis.client import Place
    from notary.backends.redis.fitness import unreachable

    try:
        return Place(settings.store)
    except OSError as error:
        raise StoreGone(unreachable(settings, str(error))) from error


def postgres_place(settings: Settings) -> "PostgresPlace | None":
    """Raises DatabaseGone, ValueError."""
    if settings.ledger.url is None:
        return None
    from notary.backends.postgres.fitness import unreachable
    from notary.backends.postgres.place import Place

    try:
        return Place(settings.ledger)
    except OSError as error:
        raise DatabaseGone(unreachable(settings, str(error))) from error


def open_postgres(settings: Settings, places: Places) -> Database:
    """The ledger, with its tables brought to this version. Raises DatabaseGone, KeyFileError, OSError, ValueError."""
    from notary.backends.postgres.database import PostgresDatabase
    from notary.backends.postgres.fitness import refuse_unfit, unreachable
    from notary.ledger.postgres import OWN, prepare

    place = places.postgres or postgres_place(settings)
    assert place is not None, "one is configured"
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
