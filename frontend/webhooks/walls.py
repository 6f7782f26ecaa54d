"""The walls of the deliverer: the secrets of its endpoints to read, the ports of its endpoints to connect to, no more.

It may look up names and connect by TCP to the ports that its configuration names, at any address: which address is for
frontend/webhooks/network.py. SECURITY: ledger and keys are no place of it; of a folder that holds them it has the
secret file alone, as it was when it started.
"""

import resource
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ipc.network.addresses import split_address
from ipc.settings import Settings
from ipc.texts.beneath import holds
from ipc.walls import given as names
from ipc.walls.calls import forbidden
from ipc.walls.confining import Walls
from ipc.walls.landlock import READ, READ_FILES, WRITE_FILES, PathRule, Scope
from ipc.walls.places import homes, outside_places, program_places
from ipc.walls.seccomp import compile_rules

NICENESS: Final = 5
"""Answers to callers have priority over notifications of endpoints."""
_DOMAIN: Final = 53
"""The port of name servers, which send long answers by TCP."""
_PORTS: Final = {"http": 80, "https": 443}
_LOOKED_UP_BY: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where links from /etc lead to, in which files are replaced."""


def walls(settings: Settings) -> Walls:
    """The walls that the kernel builds around the deliverer of this configuration."""
    return Walls(
        filter=compile_rules(forbidden(connects=True), is_list_of_refused=True),
        places=(
            *program_places(), *outside_places(), *(PathRule(path, READ) for path in _LOOKED_UP_BY),
            PathRule("/dev/null", READ_FILES | WRITE_FILES), *_secrets(settings),
        ),
        scope=Scope(ports=tuple(sorted({_DOMAIN, *_ports(settings)}))),
        namespaces=frozenset({names.USER_NAMESPACE, names.IPC_NAMESPACE}),
        checks_owners=True,
        private_files=tuple(row.secret_file for row in settings.webhooks),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )  # fmt: skip


def _ports(settings: Settings) -> Iterator[int]:
    for row in settings.webhooks:
        if not row.disable:
            parts = urlsplit(row.url)
            mapped = settings.egress.unsafe_resolve.get(parts.hostname or "")
            yield split_address(mapped)[1] if mapped is not None else parts.port or _PORTS[parts.scheme]


def _secrets(settings: Settings) -> Iterator[PathRule]:
    for row in settings.webhooks:
        if row.disable or row.secret_file is None:
            continue
        for place in homes([row.secret_file]):
            yield place if not holds(place.path, settings.guarded) else PathRule(row.secret_file, READ_FILES)
