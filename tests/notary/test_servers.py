"""The servers of a notary: looked up before its walls stand."""

from ipc.settings import LedgerSettings, Settings, StoreSettings
from notary.servers.table import NOT_LOOKED_UP, look_up
from tests.notary.samples import changed


def test_only_configured_servers_are_looked_up() -> None:
    alone = Settings("/state", "http://gateway.test")
    store, ledger = (
        StoreSettings(redis_url="redis://localhost:7000"),
        LedgerSettings(url="postgresql://ann@localhost/d"),
    )
    assert look_up(alone) == NOT_LOOKED_UP
    assert look_up(changed(alone, store=store)).keys() == {"redis"}
    assert look_up(changed(alone, ledger=ledger)).keys() == {"postgresql"}
    assert look_up(changed(alone, store=store, ledger=ledger)).keys() == {"redis", "postgresql"}
