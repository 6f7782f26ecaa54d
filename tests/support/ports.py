"""Ports for servers that can't be asked to pick one themselves."""

import errno
import random
import socket


def free_port() -> int:
    """A port of this machine that nobody listens on, and that the kernel gives to no connection meanwhile."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                return port
    raise AssertionError("no free port among a hundred")
