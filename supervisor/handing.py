"""Descriptors that are given away with a message: all of them or none, and what becomes of a child that lacks them.

A supervisor that has no descriptor left must not end for it: whatever it was about to start is started again later.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from supervisor.children import Child
from supervisor.logs import log


def copies(*descriptors: int) -> tuple[int, ...]:
    """Others of these descriptors, for `Control.post` to take over. Raises OSError; none is left open then."""
    made: list[int] = []
    try:
        for one in descriptors:
            made.append(os.dup(one))
    except OSError:
        for one in made:
            os.close(one)
        raise
    return tuple(made)


@contextmanager
def handing_over(child: Child) -> Iterator[None]:
    """What a child is given right after its start. Where that can't be had the child is killed, so that its keeper
    starts another one."""
    try:
        yield
    except OSError as error:
        log.error(f"{child.name} is killed: what it needs can't be handed to it", pid=child.pid, cause=error.strerror)
        child.kill()
