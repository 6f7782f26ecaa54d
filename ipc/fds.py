"""File descriptors that travel beside frames (SCM_RIGHTS), for both ends of a channel."""

import array
import os
import socket
from collections import deque
from collections.abc import Iterable

from ipc.framing import FrameError
from ipc.limits import MAX_FDS_PER_MESSAGE

ANCILLARY_BYTES = socket.CMSG_SPACE(MAX_FDS_PER_MESSAGE * array.array("i").itemsize)
RECEIVE_FLAGS = socket.MSG_CMSG_CLOEXEC
"""SECURITY: what is received is close-on-exec from the first instant."""

Ancillary = Iterable[tuple[int, int, bytes]]


def packed(fds: tuple[int, ...]) -> "list[tuple[int, int, array.array[int]]]":
    """The ancillary argument of sendmsg for these descriptors."""
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]


def unpack_into(fds: deque[int], ancillary: Ancillary, flags: int) -> None:
    """Append received descriptors in order. Raises FrameError when the kernel had to drop some."""
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
            fds.extend(numbers)
    if flags & socket.MSG_CTRUNC:
        raise FrameError("more descriptors than the cap allows")


def close_all(fds: deque[int]) -> None:
    """Close every descriptor that was not taken."""
    while fds:
        os.close(fds.popleft())
