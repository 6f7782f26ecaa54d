"""Redis, registered as a server for the store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ipc.backends.redis_address import parse_redis_url
from ipc.backends.servers import REDIS
from ipc.process.clock import TimeSource
from ipc.settings import Settings
from ipc.walls.landlock import READ_FILES, WRITE_FILES, PathRule
from ipc.walls.places import homes, outside_places
from notary.database import OpenTransaction
from notary.servers.registration import StoreServer
from notary.store.contract import StoreGone

if TYPE_CHECKING:
    from notary.backends.redis.stores import Stores


def _places(settings: Settings) -> Iterator[PathRule]:
    store = settings.store
    address = parse_redis_url(store.redis_url or "")
    yield from homes((store.redis_password_file,))
    if address.path is not None:
        yield PathRule(address.path, READ_FILES | WRITE_FILES)
    if address.is_tls:
        yield from outside_places() if store.redis_ca_file is None else (PathRule(store.redis_ca_file, READ_FILES),)


def _look_up(settings: Settings) -> Any:
    from notary.backends.redis.client import RedisTarget as RedisPlace
    from notary.backends.redis.fitness import unreachable

    try:
        return RedisPlace(settings.store)
    except OSError as error:
        raise StoreGone(unreachable(settings, str(error))) from error


def _problem(settings: Settings) -> str | None:
    from notary.backends.redis.fitness import problem_of_redis

    return problem_of_redis(settings)


def _open(
    settings: Settings,
    place: Any,
    clock: TimeSource,
    connection: OpenTransaction,
    *,
    last: int,
    is_new: bool,
    gateway_id: str,
) -> "Stores":
    from notary.backends.redis.opening import open_stores

    return open_stores(settings, place, clock, connection, last=last, is_new=is_new, gateway_id=gateway_id)


SERVER = StoreServer(
    declared=REDIS, password_file=lambda settings: settings.store.redis_password_file, places=_places,
    look_up=_look_up, problem=_problem, open=_open,
)  # fmt: skip
