"""The walls of the notary and of a reader: files of their own, no network, no program, no capability.

With a server for store or ledger the notary may connect to its ports, by TCP and by nothing else; a Unix socket needs
no network. A reader of a PostgreSQL has its one connection before its walls stand.

The notary opens keys that are rotated and files that are made while it runs, so it keeps whole folders; a reader has
the database's three files and nothing else, and a short list of what it may ask of the kernel.
"""

import errno
import os
import resource
import socket
from collections.abc import Sequence
from pathlib import Path

from ipc.backends.servers import ServerAddress
from ipc.settings import Settings
from ipc.walls import given as names
from ipc.walls.bpf import OneOf, SyscallRule
from ipc.walls.bpf import errno as refusal
from ipc.walls.calls import allow, common, file_locks, forbidden, refuse
from ipc.walls.confining import Walls
from ipc.walls.landlock import READ_FILES, WRITE_FILES, PathRule, Scope
from ipc.walls.places import homes, kept, program_places
from ipc.walls.seccomp import Rules, compile_rules
from notary.servers.table import servers

_ALONE = frozenset({names.USER_NAMESPACE, names.NETWORK_NAMESPACE, names.IPC_NAMESPACE})
_READS = "openat stat lstat newfstatat statx lseek pread64 access faccessat faccessat2 readlink getcwd geteuid"
_SOCKET_TYPE = 0xF
_SHARES = "pwrite64 ftruncate"
"""System calls on SQLite's -shm file."""


def reader_rules() -> Rules:
    """System calls of a reader."""
    return {
        **common(), **allow(_READS), **allow(_SHARES), **refuse("fchown fchmod", errno.EPERM), **file_locks()
    }  # fmt: skip


def notary_walls(settings: Settings) -> Walls:
    """The walls that the kernel builds around the notary."""
    keys = (
        settings.lease_signing_key_path, settings.grant_signing_key_path, settings.receipt_signing_key_path,
        settings.receipt_keys_jwks_path,
    )  # fmt: skip
    used = servers(settings)
    addresses = [one.address(settings) for one in used]
    ports = tuple({port for one in addresses for port in one.ports})
    outside = tuple(place for one in used for place in one.places(settings))
    own = (settings.state_dir, os.path.dirname(settings.ledger_file), *(place.path for place in homes(keys)))
    return Walls(
        filter=compile_rules(_reaching(addresses) if addresses else forbidden(), is_list_of_refused=True),
        places=(*program_places(), *kept(own), *outside),
        scope=Scope(ports=ports),
        namespaces=_ALONE - {names.NETWORK_NAMESPACE} if ports else _ALONE,
        checks_owners=True,
        private_files=(
            *keys, os.path.join(os.path.dirname(settings.receipt_signing_key_path or ""), "checkpoint.pem"),
            *(one.password_file(settings) for one in used),
        ),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )  # fmt: skip


def _reaching(addresses: Sequence[ServerAddress]) -> Rules:
    """Connections to servers, and no datagram, which Landlock does not restrict."""
    by_path = {socket.AF_UNIX} if any(one.host is None for one in addresses) else set()
    by_name = {socket.AF_INET, socket.AF_INET6} if any(one.host is not None for one in addresses) else set()
    families = tuple(sorted(by_path | by_name))
    streams = (OneOf(0, families), OneOf(1, (socket.SOCK_STREAM,), _SOCKET_TYPE))
    return forbidden(connects=True) | {"socket": SyscallRule(conditions=streams, otherwise=refusal(errno.EACCES))}


def reader_walls(file: Path | None) -> Walls:
    """Walls of a reader of this file; None: of a connection that it already has."""
    own = (
        []
        if file is None
        else [
            PathRule(str(file), READ_FILES),
            PathRule(f"{file}-wal", READ_FILES),
            PathRule(f"{file}-shm", READ_FILES | WRITE_FILES),
        ]
    )
    return Walls(
        filter=compile_rules(reader_rules()),
        places=tuple(own),
        namespaces=_ALONE | {names.MOUNT_NAMESPACE},
        limits={resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 16, resource.RLIMIT_NPROC: 0},
    )
