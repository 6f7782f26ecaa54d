"""All addresses that a name has, for clients that try them in turn: the first may be one that nothing listens at."""

import socket
from typing import Final

MAX_ADDRESSES: Final = 4
"""The most addresses of a name that are tried: with more, the callers of the connection would time out first."""


def numeric_addresses(host: str, port: int) -> tuple[str, ...]:
    """Those of a name, in the order of the resolver, each once. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))[:MAX_ADDRESSES]
