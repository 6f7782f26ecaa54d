"""The walls that this kernel offers: each is tried in a process of its own.

Tried and not told from versions or settings of the kernel: a container runtime or a security module may refuse what the
kernel has. For a caller of one thread, since it forks. Takes a few milliseconds.
"""

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial

from ipc.walls import given as names
from ipc.walls.landlock import abi
from ipc.walls.namespaces import IPC, MOUNT, NETWORK, USER, see_no_files, unshare
from ipc.walls.privileges import User, become
from ipc.walls.seccomp import has_kill_process
from ipc.walls.syscalls import is_known_machine

_NAMESPACES = ((names.NETWORK_NAMESPACE, NETWORK), (names.IPC_NAMESPACE, IPC), (names.MOUNT_NAMESPACE, MOUNT))


def missing_walls(user: User | None) -> tuple[str, ...]:
    """The names of the walls that can't be built here. `user` is whom workers become, None for the caller's own."""
    return tuple(_missing(user))


def can_become(user: User) -> bool:
    """Whether a child of this process can become this user."""
    return _works(lambda: become(user))


def _missing(user: User | None) -> Iterator[str]:
    if not is_known_machine() or not has_kill_process():
        yield names.SECCOMP
    if abi() == 0:
        yield names.LANDLOCK
    has_user_namespace = _works(lambda: _unshared(user, USER))
    if not has_user_namespace:
        yield names.USER_NAMESPACE
    base = USER if has_user_namespace else 0
    whom = user if has_user_namespace else None  # without one it is root that leaves the others, and then goes
    namespaces = [name for name, kind in _NAMESPACES if _works(partial(_unshared, whom, base | kind))]
    yield from (name for name, _ in _NAMESPACES if name not in namespaces)
    if names.MOUNT_NAMESPACE not in namespaces or not _works(lambda: _emptied(whom, base | MOUNT)):
        yield names.EMPTY_ROOT


def _unshared(user: User | None, kinds: int) -> None:
    if user is not None:
        become(user)
    unshare(kinds)


def _emptied(user: User | None, kinds: int) -> None:
    _unshared(user, kinds)
    see_no_files()


def _works(attempt: Callable[[], None]) -> bool:
    """Whether this succeeds in a child, which ends with it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return status == 0
