"""The walls of the policy process: no file, no network, no process, no code but what it has loaded.

It reads what operators wrote, in a language made for that, with a library in C++: it is walled like a worker that
computes, and may set the timer that ends it.
"""

import resource
from collections.abc import Callable

from ipc.walls import given as names
from ipc.walls.calls import allow, common
from ipc.walls.confining import Confinement, WallRefused, Walls
from ipc.walls.given import Given
from ipc.walls.limits import can_forbid_files
from ipc.walls.seccomp import Rules, compile_rules

_TIMER = "setitimer getitimer rt_sigaction"
_NAMESPACES = frozenset(
    {names.USER_NAMESPACE, names.NETWORK_NAMESPACE, names.IPC_NAMESPACE, names.MOUNT_NAMESPACE}
)  # fmt: skip


def rules() -> Rules:
    """The system calls of the process."""
    return common() | allow(_TIMER)


def walls(given: Given) -> Walls:
    """The walls around the process."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 8, resource.RLIMIT_NPROC: 0}
    if can_forbid_files():
        limits[resource.RLIMIT_FSIZE] = 0
    return Walls(filter=compile_rules(rules()), namespaces=_NAMESPACES, user=given.user, limits=limits)


def enter(given: Given, start_threads: Callable[[], None]) -> None:
    """Build the walls, for good; libraries must be loaded, and the process have one thread. `start_threads` starts all
    that it will ever have. Raises WallRefused."""
    try:
        confinement = Confinement(walls(given), given)
        confinement.confine()
        start_threads()
        confinement.seal()
    except (OSError, ValueError, RuntimeError) as error:
        raise WallRefused(str(error)) from error
