"""Duplicates descriptors to send with a message, all or none, and ends a child that can't be given its descriptors.

A supervisor without free descriptors must not end: the process that it was about to start is started again later.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from supervisor.children.children import Child
from supervisor.logs import log


def copies(*descriptors: int) -> tuple[int, ...]:
    """Duplicates of the descriptors; `Control.post` owns them. Raises OSError; then none is left open."""
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
    """Prepare the descriptors of a child right after its start. If that fails, kill the child, so that its keeper
    starts another one."""
    try:
        yield
    except OSError as error:
        log.error(f"{child.name} is killed: its descriptors can't be handed over", pid=child.pid, cause=error.strerror)
        child.kill()
