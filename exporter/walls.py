"""The walls of the exporter: the collector's port, the file of headers, and nothing else of the gateway.

SECURITY: ledger and keys are no place of it; of a folder that holds them it has the file of headers alone, as it was
when it started.
"""

import resource
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from ipc.configuration.telemetry import OtlpSettings
from ipc.texts.beneath import holds
from ipc.walls import given as names
from ipc.walls.calls import forbidden
from ipc.walls.confining import Walls
from ipc.walls.landlock import READ, READ_FILES, WRITE_FILES, PathRule, Scope
from ipc.walls.places import homes, outside_places, program_places
from ipc.walls.seccomp import compile_rules

NICENESS: Final = 5
"""Answers to callers have priority over spans."""
_DOMAIN: Final = 53
"""The port of name servers, which send long answers by TCP."""
_PORTS: Final = {"http": 80, "https": 443}
_LOOKED_UP_BY: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where links from /etc lead to, in which files are replaced."""


def walls(otlp: OtlpSettings, guarded: Iterable[str]) -> Walls:
    """The walls that the kernel builds around the exporter of this collector."""
    parts = urlsplit(otlp.endpoint or "")
    port = parts.port or _PORTS[parts.scheme]
    return Walls(
        filter=compile_rules(forbidden(connects=True), is_list_of_refused=True),
        places=(
            *program_places(), *outside_places(), *(PathRule(path, READ) for path in _LOOKED_UP_BY),
            PathRule("/dev/null", READ_FILES | WRITE_FILES), *_headers(otlp.headers_file, tuple(guarded)),
        ),
        scope=Scope(ports=tuple(sorted({_DOMAIN, port}))),
        namespaces=frozenset({names.USER_NAMESPACE, names.IPC_NAMESPACE}),
        checks_owners=True,
        private_files=(otlp.headers_file,),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )  # fmt: skip


def _headers(file: str | None, guarded: tuple[str, ...]) -> Iterator[PathRule]:
    for place in homes([file]) if file is not None else ():
        yield place if not holds(place.path, guarded) else PathRule(file or "", READ_FILES)
