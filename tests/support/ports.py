"""Ports for servers that can't be asked to pick one themselves, and one that stays closed."""

import errno
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    """A port of this machine without a listener, which the kernel gives to no connection meanwhile."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                return port
    raise AssertionError("no free port among a hundred")


@contextmanager
def closed_port() -> Iterator[int]:
    """A port without a listener, bound so that no other program can take it meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
