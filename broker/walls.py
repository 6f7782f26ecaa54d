"""The walls of the broker: names to look up, servers to connect to, no folder of the gateway.

It may connect by TCP to any port, since manifests name its servers and a reload may bring others: which address is for
broker/connecting.py. SECURITY: ledger, keys, manifests and the secrets file are no place of it.
"""

import resource
from typing import Final

from ipc.walls import given as names
from ipc.walls.calls import forbidden
from ipc.walls.confining import Walls
from ipc.walls.landlock import READ, READ_FILES, WRITE_FILES, PathRule, Scope
from ipc.walls.places import outside_places, program_places
from ipc.walls.seccomp import compile_rules

_LOOKED_UP_BY: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where links from /etc lead to, in which files are replaced."""


def walls() -> Walls:
    """The walls that the kernel builds around every broker."""
    return Walls(
        filter=compile_rules(forbidden(connects=True), is_list_of_refused=True),
        places=(
            *program_places(), *outside_places(), *(PathRule(path, READ) for path in _LOOKED_UP_BY),
            PathRule("/dev/null", READ_FILES | WRITE_FILES),
        ),
        scope=Scope(may_connect=True),
        namespaces=frozenset({names.USER_NAMESPACE, names.IPC_NAMESPACE}),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )  # fmt: skip
