"""The table of the notary's servers, and where those of a configuration are.

Names are looked up before the walls stand: behind them none can be.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ipc.settings import Settings
from notary.servers import postgres, redis
from notary.servers.registration import LedgerServer, NotaryServer, StoreServer

STORES: Final[tuple[StoreServer, ...]] = (redis.SERVER,)
LEDGERS: Final[tuple[LedgerServer, ...]] = (postgres.SERVER,)

Places: TypeAlias = Mapping[str, Any]
"""Name of a server -> the place that its `look_up` has found."""
NOT_LOOKED_UP: Final[Places] = MappingProxyType({})


def servers(settings: Settings) -> tuple[NotaryServer, ...]:
    """The servers that these settings name."""
    return tuple(one for one in (*STORES, *LEDGERS) if one.declared.url(settings) is not None)


def store_server(settings: Settings) -> StoreServer | None:
    """The server for the store; None for the store in the ledger."""
    return next((one for one in STORES if one.declared.url(settings) is not None), None)


def ledger_server(settings: Settings) -> LedgerServer | None:
    """The server for the ledger; None for the file."""
    return next((one for one in LEDGERS if one.declared.url(settings) is not None), None)


def look_up(settings: Settings) -> Places:
    """Look up the place of each server. Raises StoreGone, DatabaseGone, ValueError."""
    return {one.declared.name: one.look_up(settings) for one in servers(settings)}


def place_of(server: NotaryServer, settings: Settings, places: Places) -> Any:
    """The place of the server, looked up now if it was not before. Raises as look_up."""
    return places[server.declared.name] if server.declared.name in places else server.look_up(settings)
