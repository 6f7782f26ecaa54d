"""Which addresses effects and notifications may reach: those of the public Internet, and no other.

Owns the table of what is not public (IANA special-purpose registries, RFC 6890 and its updates) and
168.63.129.16, the metadata service of Azure's hosts. Guarantees that an address hidden in another one (IPv4-mapped,
6to4, NAT64, Teredo) counts as what it hides. Never resolves names.
"""

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_BLOCKED_V4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
        "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
        "240.0.0.0/4",
    )
)  # fmt: skip
_GLOBAL_V6 = IPv6Network("2000::/3")
_BLOCKED_V6 = tuple(
    IPv6Network(block)
    for block in ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "3ffe::/16")
)
_PRIVATE_V4 = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
"""RFC 1918."""
_PRIVATE_V6 = IPv6Network("fc00::/7")
"""RFC 4193."""
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """True for an address (without zone) that is globally reachable unicast. Anything unreadable is not."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return _is_public_v4(address) if isinstance(address, IPv4Address) else _is_public_v6(address)


def is_private(text: str) -> bool:
    """True for an address (without zone) of a private network. Loopback and link-local addresses are of none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return any(address in block for block in _PRIVATE_V4)
    return address.scope_id is None and address in _PRIVATE_V6


def _is_public_v4(address: IPv4Address) -> bool:
    return not any(address in block for block in _BLOCKED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if address.scope_id is not None:
        return False
    if address.ipv4_mapped is not None:
        return False
    if address in _NAT64:
        return _is_public_v4(IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in block for block in _BLOCKED_V6)


def split_address(text: str) -> tuple[str, int]:
    """`127.0.0.1:80` or `[::1]:80` -> (address, port). Raises ValueError."""
    host, _, port = text.rpartition(":")
    return str(ipaddress.ip_address(host.strip("[]"))), int(port)
