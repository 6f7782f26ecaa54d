"""Where the master is, as sentinels say: all are asked, and the newest of their views counts.

A sentinel that was cut off from the others still names the earlier master; the number of the failover (config-epoch)
shows that. Sentinels are asked without a user. An answer must be a numeric address with a configured port: behind its
walls a notary reaches no other port, and looks up no name.
"""

import contextlib
import ipaddress
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import redis

from ipc.backends.redis_address import RedisAddress

if TYPE_CHECKING:
    from redis.connection import ConnectionInterface


class Spot(NamedTuple):
    """One server: what its certificate is for, and where it is."""

    host: str
    numeric: str
    port: int


def master_of(address: RedisAddress, sentinels: "Mapping[Spot, redis.ConnectionPool]") -> Spot:
    """Raises redis.RedisError with what each of them says where none knows."""
    views: list[tuple[int, Spot]] = []
    said: list[str] = []
    for spot, pool in sentinels.items():
        try:
            views.append(_view_of(pool.make_connection(), address))
        except (redis.RedisError, OSError, ValueError) as error:
            said.append(f"{spot.host}:{spot.port}: {error}")
    if not views:
        raise redis.ConnectionError(f"no sentinel tells where {address.master} is ({'; '.join(said)})")
    return max(views)[1]


def _view_of(connection: "ConnectionInterface", address: RedisAddress) -> tuple[int, Spot]:
    """Number of the last failover, and the master since. Raises redis.RedisError, OSError, ValueError."""
    try:
        connection.connect()
        connection.send_command("SENTINEL", "MASTER", address.master)
        told = connection.read_response()
    finally:
        with contextlib.suppress(Exception):
            connection.disconnect()
    if not isinstance(told, list):
        raise ValueError("an answer that makes no sense")
    view = dict(zip(told[::2], told[1::2], strict=True))
    numeric, port = str(view.get("ip")), int(view.get("port", 0))
    try:
        ipaddress.ip_address(numeric)
    except ValueError:
        raise ValueError("it tells a name: set sentinel announce-hostnames no") from None
    if port not in address.master_ports:
        raise ValueError(f"the master has the port {port}, which is not among the ports of store.redis_url")
    return int(view.get("config-epoch", 0)), Spot(numeric, numeric, port)
