"""Ports for servers that can't be asked to pick one themselves, and one that stays closed."""

import errno
import itertools
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

FIRST, BLOCK, BLOCKS = 20_000, 400, 30
_ONE_AT_A_TIME = Lock()


def free_port() -> int:
    """A port of this machine without a listener. The kernel gives it to no connection meanwhile; no other run of
    tests gets it from here, and this run gets it again only after hundreds of others."""
    with _ONE_AT_A_TIME:
        for port in itertools.islice(_own_ports(), BLOCK):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                    return port
    raise AssertionError(f"no free port among {BLOCK}")


@cache
def _own_ports() -> Iterator[int]:
    """Those of this process, again and again: a block that no other process has for as long as this one lives."""
    for number in range(BLOCKS):
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0gateway-tests-ports-{number}")
        except OSError:
            claim.close()
            continue
        claim.detach()  # the name is given up by the end of the process
        first = FIRST + number * BLOCK
        return itertools.cycle(random.sample(range(first, first + BLOCK), BLOCK))
    raise AssertionError("every block of ports is taken")


@contextmanager
def closed_port() -> Iterator[int]:
    """A port without a listener, bound so that no other program can take it meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]
