"""File descriptors that travel beside frames (SCM_RIGHTS), for both ends of a channel."""

import array
import os
import socket
from collections import deque
from collections.abc import Iterable

from ipc.channel.framing import FrameError
from ipc.limits import MAX_FDS_PER_MESSAGE

ANCILLARY_BYTES = socket.CMSG_SPACE(MAX_FDS_PER_MESSAGE * array.array("i").itemsize)
RECEIVE_FLAGS = socket.MSG_CMSG_CLOEXEC
"""SECURITY: what is received is close-on-exec from the first instant."""

MAX_WAITING = 64
"""Descriptors that wait for their messages: more belong to none."""
LOST = -1
"""Stands in a channel's `fds` for all descriptors of one message that this process could not receive."""

Ancillary = Iterable[tuple[int, int, bytes]]


def packed(fds: tuple[int, ...]) -> "list[tuple[int, int, array.array[int]]]":
    """The ancillary argument of sendmsg for these descriptors."""
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]


class DescriptorLost(FrameError):
    """The descriptors of a message could not be received: this process has too many open."""

    def __init__(self) -> None:
        super().__init__("its descriptors could not be received")


def unpack_into(fds: deque[int], ancillary: Ancillary, flags: int) -> None:
    """Append the descriptors of one read in order. The kernel ends a read behind the first message that has any, so
    where it had to drop some, LOST stands for those of one message. Raises FrameError for more than the cap, and for
    those that no message takes."""
    received: deque[int] = deque()
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
            received.extend(numbers)
    is_over = len(received) > MAX_FDS_PER_MESSAGE or len(fds) > MAX_WAITING
    if flags & socket.MSG_CTRUNC or is_over:
        is_over = is_over or len(received) == MAX_FDS_PER_MESSAGE
        close_all(received)
        received.append(LOST)
    fds.extend(received)
    if is_over:
        raise FrameError("more descriptors than the cap allows")


def take(fds: deque[int], count: int = 1) -> tuple[int, ...]:
    """The descriptors of the next message. Raises DescriptorLost when this process could not receive them, and
    FrameError when they were not sent."""
    if fds and fds[0] == LOST:
        fds.popleft()
        raise DescriptorLost
    if len(fds) < count:
        raise FrameError("a message came without its descriptors")
    return tuple(fds.popleft() for _ in range(count))


def close_all(fds: deque[int]) -> None:
    """Close every descriptor that was not taken."""
    while fds:
        if (fd := fds.popleft()) != LOST:
            os.close(fd)
