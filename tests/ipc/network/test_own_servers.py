"""The servers of a gateway that no private network leads to."""

from ipc.network.own_servers import own_servers
from ipc.settings import LedgerSettings, MetricsSettings, Settings, StoreSettings


def test_listeners_and_servers_that_are_named_by_address_are_found() -> None:
    settings = Settings(
        "/s", "https://g.example", listen_http_addr="127.0.0.1:3000", metrics=MetricsSettings(listen="[::1]:9464"),
        opa_url="https://10.1.2.3", egress_proxy_url="http://localhost:3128",
        store=StoreSettings("redis://10.1.2.4/0"), ledger=LedgerSettings(url="postgresql://u@10.1.2.5/db"),
    )  # fmt: skip
    assert own_servers(settings) == {
        "127.0.0.1:3000", "[::1]:9464", "10.1.2.3:443", "127.0.0.1:3128", "[::1]:3128", "10.1.2.4:6379",
        "10.1.2.5:5432",
    }  # fmt: skip


def test_a_listener_at_all_addresses_takes_its_port_from_every_network() -> None:
    assert own_servers(Settings("/s", "https://g.example", listen_http_addr="0.0.0.0:3000")) == {"*:3000"}


def test_each_sentinel_and_each_port_of_its_redis_is_found() -> None:
    store = StoreSettings("redis+sentinel://10.0.0.1:26379,10.0.0.2:26380/main?ports=6379")
    assert own_servers(Settings("/s", "https://g.example", store=store)) == {
        "10.0.0.1:26379", "10.0.0.1:6379", "10.0.0.2:26380", "10.0.0.2:6379",
    }  # fmt: skip


def test_sockets_and_names_are_no_addresses() -> None:
    settings = Settings(
        "/s", "https://g.example", opa_url="unix:///run/opa.sock", egress_proxy_url="http://proxy.internal:3128",
        store=StoreSettings("unix:///run/redis.sock"), ledger=LedgerSettings(url="postgresql:///db?host=/run/pg"),
    )  # fmt: skip
    assert own_servers(settings) == frozenset()
