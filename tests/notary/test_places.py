"""Where the backends of a notary are, as it is found out before its walls stand."""

from ipc.settings import LedgerSettings, Settings, StoreSettings
from notary.places import NOT_LOOKED_UP, look_up
from tests.notary.samples import changed


def test_what_is_configured_is_looked_up_and_nothing_else() -> None:
    alone = Settings("/state", "http://gateway.test")
    store, ledger = (
        StoreSettings(redis_url="redis://localhost:7000"),
        LedgerSettings(url="postgresql://ann@localhost/d"),
    )
    assert look_up(alone) == NOT_LOOKED_UP
    of_redis, of_postgres = look_up(changed(alone, store=store)), look_up(changed(alone, ledger=ledger))
    assert (of_redis.redis is None, of_redis.postgres is None) == (False, True)
    assert (of_postgres.redis is None, of_postgres.postgres is None) == (True, False)
    both = look_up(changed(alone, store=store, ledger=ledger))
    assert None not in both
