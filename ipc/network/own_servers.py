"""The TCP servers that a gateway has and uses, as far as its configuration names them by address: no private network
leads there.

A server that the configuration names by a host name is not among them: a name is not resolved here, and another one may
lead to the same address.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ipc.backends.postgres_address import parse_postgres_url
from ipc.backends.redis_address import parse_redis_url
from ipc.network.addresses import split_address
from ipc.settings import Settings

ANY: Final = "*"
"""In the place of an address: every one."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def own_servers(settings: Settings) -> frozenset[str]:
    """Listeners, store, ledger, policy engine and egress proxy, as `spelt` spells them."""
    found = set[str]()
    for host, port in _servers(settings):
        if host == "localhost":
            found |= {spelt("127.0.0.1", port), spelt("::1", port)}
            continue
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            continue
        # A listener at all addresses is reached at any that this host has.
        found.add(spelt(ANY if address.is_unspecified else str(address), port))
    return frozenset(found)


def spelt(address: str, port: int) -> str:
    """`127.0.0.1:80`, `[::1]:80` or `*:80`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _servers(settings: Settings) -> Iterator[tuple[str, int]]:
    for listener in (settings.listen_http_addr, settings.metrics.listen):
        if listener is not None:
            yield split_address(listener)
    for url in (settings.opa_url, settings.egress_proxy_url):
        parts = urlsplit(url or "")
        if parts.hostname is not None:
            yield parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    if settings.store.redis_url is not None:
        redis = parse_redis_url(settings.store.redis_url)
        for host, port in redis.sentinels or ((redis.host or "", redis.port),):
            yield from ((host, one) for one in (port, *redis.master_ports))
    if settings.ledger.url is not None:
        postgres = parse_postgres_url(settings.ledger.url)
        yield postgres.host or "", postgres.port
