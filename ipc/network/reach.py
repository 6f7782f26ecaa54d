"""Where a name may lead: one judgement for workers, the broker and `gateway check --connect`.

A name of private networks leads into their ranges, at their ports, and nowhere else; a name of none leads to public
addresses alone. Addresses that hide another one (IPv4-mapped, 6to4, NAT64) count as that one. Never resolves a name:
the caller resolves once, asks here, and connects to an address of the answer.
"""

import ipaddress
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, NamedTuple

from ipc.configuration.networks import NetworkSettings, PlanNetwork
from ipc.network.addresses import is_public
from ipc.network.domains import matches, overlap
from ipc.network.own_servers import ANY, spelt

NEVER: Final = tuple(
    ipaddress.ip_network(block)
    for block in (
        "0.0.0.0/8", "100.100.100.200/32", "168.63.129.16/32", "169.254.0.0/16", "192.0.0.192/32", "224.0.0.0/4",
        "255.255.255.255/32", "::/128", "fd00:42::42/128", "fd00:c1::a9fe:a9fe/128", "fd00:ec2::254/128",
        "fd20:ce::254/128", "fe80::/10", "ff00::/8", "2001::/32", "64:ff9b:1::/48",
    )
)  # fmt: skip
"""No network holds these: addresses that name no host, link-local ones and services of metadata, groups, and forms of
IPv6 that hide an address which can't be told (Teredo, NAT64 with a prefix of its own)."""
LOOPBACK: Final = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_HIGHEST_V4 = 2**32 - 1
_SIX_TO_FOUR = IPv6Network("2002::/16")
_NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/96"))


class ReachRefused(Exception):
    """The name must not be connected to. The text holds no address."""


class Reach(NamedTuple):
    """The addresses that may be connected to, and the network that they lie in; None: the Internet."""

    addresses: tuple[str, ...]
    network: PlanNetwork | None


def networks_for(networks: Iterable[NetworkSettings], domains: Iterable[str]) -> tuple[PlanNetwork, ...]:
    """The networks that names of these domain rules may lead into, in the order of the configuration."""
    rules = tuple(domains)
    return tuple(
        one.planned for one in networks if any(overlap(rule, own) for rule in rules for own in one.domains)
    )  # fmt: skip


def reach_of(
    host: str, port: int, addresses: Sequence[str], networks: Iterable[PlanNetwork], own_servers: Collection[str] = ()
) -> Reach:
    """Return where `host`, which has these addresses, may be connected to. Raises ReachRefused.

    No network leads to `own_servers` (ipc/network/own_servers.py).
    """
    named = networks_of(host, networks)
    if not named:
        public = tuple(address for address in addresses if is_public(address))
        if not public:
            raise ReachRefused("the domain leads to a private or reserved address")
        return Reach(public, None)
    names = " and ".join(one.name for one in named)
    open_ones = [one for one in named if not one.ports or port in one.ports]
    if not open_ones:
        raise ReachRefused(f"the port is not one of the private network {names}")
    if any(_is_own(address, port, own_servers) for address in addresses):
        raise ReachRefused("the domain leads to a server that the gateway itself uses")
    homes = [_home(address, open_ones) for address in addresses]
    # SECURITY: one address elsewhere is enough: the name is another's, or is about to be.
    if not homes or None in homes:
        raise ReachRefused(f"the domain leads outside the private network {names}")
    # TLS is the network's: addresses in another one are not tried.
    return Reach(tuple(address for address, home in zip(addresses, homes, strict=True) if home is homes[0]), homes[0])


def networks_of(host: str, networks: Iterable[PlanNetwork]) -> list[PlanNetwork]:
    """The networks whose domains have this name."""
    return [one for one in networks if matches(host, one.domains)]


def may_send_plain(host: str, networks: Iterable[PlanNetwork]) -> bool:
    """True if secrets may go to this name over http: every network that has it says so."""
    named = networks_of(host, networks)
    return bool(named) and all(one.unsafe_plain_secrets for one in named)


def hidden_in(text: str) -> IPv4Address | IPv6Address | None:
    """The address that this one is or hides; None for one that can't be read, has a zone, or hides one that can't be
    told."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address.scope_id is not None:
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if 1 < int(address) <= _HIGHEST_V4:  # IPv4-compatible
        return IPv4Address(int(address))
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & _HIGHEST_V4)
    if any(address in block for block in _NAT64):
        return IPv4Address(int(address) & _HIGHEST_V4)
    return address


def _home(text: str, networks: Iterable[PlanNetwork]) -> PlanNetwork | None:
    """The first network that holds the address; None: none may."""
    address = hidden_in(text)
    if address is None or any(address in block for block in NEVER):
        return None
    return next((one for one in networks if any(address in block for block in _blocks(one.ranges))), None)


def _is_own(text: str, port: int, own_servers: Collection[str]) -> bool:
    address = hidden_in(text)
    return address is not None and (spelt(str(address), port) in own_servers or spelt(ANY, port) in own_servers)


@lru_cache(maxsize=256)
def _blocks(ranges: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ipaddress.ip_network(block) for block in ranges)
