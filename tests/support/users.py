"""Connections of several users of this host to one Unix socket. Needs root."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory


@contextmanager
def open_to_all() -> Iterator[socket.socket]:
    """A Unix socket in a folder that every user may enter."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/gate.sock")
        listener.listen(256)
        os.chmod(folder, 0o755)
        os.chmod(f"{folder}/gate.sock", 0o777)
        yield listener


def connected_as(uid: int, path: str) -> socket.socket:
    """A connection of this user's: the kernel records who connects (unix(7))."""
    sock = socket.socket(socket.AF_UNIX)
    os.seteuid(uid)
    try:
        sock.connect(path)
    finally:
        os.seteuid(0)
    return sock
