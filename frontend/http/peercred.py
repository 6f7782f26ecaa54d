"""The process at the other end of a Unix socket, as the kernel recorded it when it connected (unix(7)).

Owns the one read of SO_PEERCRED. Never maps a user id to a principal: that is the identity provider's task.
"""

import socket
import struct
from typing import NamedTuple

_UCRED = struct.Struct("iII")


class PeerCredentials(NamedTuple):
    """Process, user and group id of the process that connected; the process may be gone by now."""

    pid: int
    uid: int
    gid: int


def peer_credentials(sock: socket.socket) -> PeerCredentials | None:
    """Credentials of the peer of a connected Unix socket, None for any other family. Raises OSError."""
    if sock.family != socket.AF_UNIX:
        return None
    return PeerCredentials(*_UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))
