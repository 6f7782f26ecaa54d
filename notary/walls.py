"""The walls of the notary, of its copier and of a reader: files of their own, no network, no program, no capability.

With `store.redis_url` or `ledger.url` the notary may connect to those ports, by TCP and by nothing else; a Unix socket
needs no network. A reader of a PostgreSQL has its one connection before its walls stand.

The notary opens keys that are rotated and files that are made while it runs, so it keeps whole folders; a reader has
the database's three files and nothing else, and a short list of what it may ask of the kernel.
"""

import errno
import os
import resource
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ipc.postgres_address import PostgresAddress, parse_postgres_url
from ipc.redis_address import RedisAddress, parse_redis_url
from ipc.settings import LedgerSettings, Settings, StoreSettings
from ipc.walls import given as names
from ipc.walls.bpf import OneOf, Rule
from ipc.walls.bpf import errno as refusal
from ipc.walls.calls import allow, common, file_locks, forbidden, refuse
from ipc.walls.confining import Confinement, Walls
from ipc.walls.given import Given
from ipc.walls.landlock import READ_FILES, WRITE_FILES, Place, Scope
from ipc.walls.places import homes, kept, outside_places, program_places
from ipc.walls.seccomp import Rules, compile_rules

_ALONE = frozenset({names.USER_NAMESPACE, names.NETWORK_NAMESPACE, names.IPC_NAMESPACE})
_READS = "openat stat lstat newfstatat statx lseek pread64 access faccessat faccessat2 readlink getcwd geteuid"
_SOCKET_TYPE = 0xF
_SHARES = "pwrite64 ftruncate"
"""System calls on SQLite's -shm file."""


T = TypeVar("T")


class WallRefused(Exception):
    """The operating system refused a wall. The process must leave with Exit.SANDBOX."""


def reader_rules() -> Rules:
    """System calls of a reader."""
    return {
        **common(), **allow(_READS), **allow(_SHARES), **refuse("fchown fchmod", errno.EPERM), **file_locks()
    }  # fmt: skip


def notary_walls(settings: Settings) -> Walls:
    """Walls of the notary."""
    keys = (
        settings.lease_signing_key_path, settings.grant_signing_key_path, settings.receipt_signing_key_path,
        settings.receipt_keys_jwks_path,
    )  # fmt: skip
    redis = None if settings.store.redis_url is None else parse_redis_url(settings.store.redis_url)
    postgres = None if settings.ledger.url is None else parse_postgres_url(settings.ledger.url)
    backends = [one for one in (redis, postgres) if one is not None]
    ports = tuple({port for one in backends for port in one.ports})
    outside = (*_places_of_redis(settings.store, redis), *_places_of_postgres(settings.ledger, postgres))
    own = (settings.state_dir, os.path.dirname(settings.ledger_file), *(place.path for place in homes(keys)))
    return Walls(
        filter=compile_rules(_reaching(backends) if backends else forbidden(), is_list_of_refused=True),
        places=(*program_places(), *kept(own), *outside),
        scope=Scope(ports=ports),
        namespaces=_ALONE - {names.NETWORK_NAMESPACE} if ports else _ALONE,
        checks_owners=True,
        private_files=(
            *keys, os.path.join(os.path.dirname(settings.receipt_signing_key_path or ""), "checkpoint.pem"),
            settings.store.redis_password_file, settings.ledger.password_file,
        ),
        limits={resource.RLIMIT_CORE: 0},
        has_environment=True,
    )  # fmt: skip


def _reaching(backends: Sequence[RedisAddress | PostgresAddress]) -> Rules:
    """Connections to backends, and no datagram: Landlock says nothing of them."""
    by_path = {socket.AF_UNIX} if any(one.host is None for one in backends) else set()
    by_name = {socket.AF_INET, socket.AF_INET6} if any(one.host is not None for one in backends) else set()
    families = tuple(sorted(by_path | by_name))
    streams = (OneOf(0, families), OneOf(1, (socket.SOCK_STREAM,), _SOCKET_TYPE))
    return forbidden(connects=True) | {"socket": Rule(conditions=streams, otherwise=refusal(errno.EACCES))}


def _places_of_redis(settings: StoreSettings, address: RedisAddress | None) -> Iterator[Place]:
    if address is None:
        return
    yield from homes((settings.redis_password_file,))
    if address.path is not None:
        yield Place(address.path, READ_FILES | WRITE_FILES)
    if address.is_tls:
        yield from outside_places() if settings.redis_ca_file is None else (Place(settings.redis_ca_file, READ_FILES),)


def _places_of_postgres(settings: LedgerSettings, address: PostgresAddress | None) -> Iterator[Place]:
    if address is None:
        return
    yield from homes((settings.password_file,))
    if address.socket is not None:
        yield Place(address.socket, READ_FILES | WRITE_FILES)
    if settings.ca_file is not None:
        yield Place(settings.ca_file, READ_FILES)


def reader_walls(file: Path | None) -> Walls:
    """Walls of a reader of this file; None: of a connection that it already has."""
    own = [] if file is None else [
        Place(str(file), READ_FILES), Place(f"{file}-wal", READ_FILES), Place(f"{file}-shm", READ_FILES | WRITE_FILES),
    ]  # fmt: skip
    return Walls(
        filter=compile_rules(reader_rules()),
        places=tuple(own),
        namespaces=_ALONE | {names.MOUNT_NAMESPACE},
        limits={resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 16, resource.RLIMIT_NPROC: 0},
    )


def copier_walls(file: Path) -> Walls:
    """Walls of the copier of this file. The notary's Landlock forbids mounts: it has no mount namespace."""
    writes = READ_FILES | WRITE_FILES
    return Walls(
        filter=compile_rules({**reader_rules(), **allow("fdatasync fsync")}),
        places=tuple(Place(f"{file}{name}", writes) for name in ("", "-wal", "-shm")),
        namespaces=_ALONE,
        limits={resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 16, resource.RLIMIT_NPROC: 0},
    )


def enter(walls: Walls, given: Given, fork: Callable[[], T] | None = None) -> T | None:
    """Build them, for good; the process must have one thread. `fork` is called just before the filter forbids forks,
    and its result returned: from then on Landlock lets this process signal no process but its own children. Raises
    WallRefused."""
    try:
        confinement = Confinement(walls, given)
        confinement.confine()
        made = None if fork is None else fork()
        confinement.seal()
        return made
    except (OSError, ValueError) as error:
        raise WallRefused(str(error)) from error
