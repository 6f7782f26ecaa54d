"""The store of a ledger in Redis, when a notary starts."""

from ipc.process.clock import TimeSource
from ipc.settings import Settings
from notary.backends.redis.client import RedisTarget
from notary.backends.redis.fitness import RedisUnfit, connected, unreachable
from notary.backends.redis.keys import RedisKeys
from notary.backends.redis.stores import Stores
from notary.database import OpenTransaction
from notary.store import proofs
from notary.store.contract import StoreGone
from notary.store.marker import keep_marker, read_doubt, read_marker


def open_stores(
    settings: Settings,
    place: RedisTarget,
    clock: TimeSource,
    connection: OpenTransaction,
    *,
    last: int,
    is_new: bool,
    gateway_id: str = "",
) -> Stores:
    """Connect, look at what is there, and undo what the ledger does not have after its unit `last`. In a transaction of
    the ledger. Raises
    StoreGone with one sentence.

    `is_new`: the ledger has no event yet. `gateway_id`: of several gateways that share the ledger, this one.
    """
    (ledger_id,) = connection.execute("SELECT value FROM meta WHERE key = 'ledger_id'").fetchone()
    try:
        client = connected(settings, place)
        stores = Stores(client, RedisKeys(settings.store.redis_prefix), gateway_id or ledger_id, clock.now)
        try:
            kept = read_marker(connection)
            marker = stores.begin(kept, proofs.epoch(connection), is_new)
            stores.recover(last, read_doubt(connection, stores.notary))
        except BaseException:
            client.close()
            raise
    except (StoreGone, RedisUnfit) as error:
        raise StoreGone(unreachable(settings, str(error))) from error
    if kept is None and not stores.is_lost:
        keep_marker(connection, marker)
    return stores
