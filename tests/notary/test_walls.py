"""The rules of the walls of notary and reader. The tests of tests/escape show that the walls hold."""

import errno
import os
import resource
import socket
from pathlib import Path
from typing import Any

import pytest

from ipc.settings import LedgerSettings, Settings, StoreSettings
from ipc.walls import given as names
from ipc.walls.bpf import ALLOW, KILL
from ipc.walls.bpf import errno as refusal
from ipc.walls.confining import Walls
from ipc.walls.landlock import CHANGE, READ, READ_FILES, WRITE_FILES, Scope
from ipc.walls.places import outside_places
from ipc.walls.syscalls import number_of
from notary.walls import notary_walls, reader_walls
from tests.support.filters import decoded, outcome

ALONE = {names.USER_NAMESPACE, names.NETWORK_NAMESPACE, names.IPC_NAMESPACE}
CLOSE_ON_EXEC = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
REFUSED = refusal(errno.EACCES)


def walls_of(folder: Path, ledger: LedgerSettings | None = None, **store: str) -> Walls:
    """Those of a notary whose ledger and keys lie beside its state, unless the ledger lies elsewhere."""
    for name in ("state", "ledger", "keys", "secret", "run"):
        (folder / name).mkdir(exist_ok=True)
    settings = Settings(
        str(folder / "state"), "https://gate.example",
        ledger=ledger or LedgerSettings(path=str(folder / "ledger" / "file")),
        receipt_signing_key_path=str(folder / "keys" / "receipt.pem"), store=StoreSettings(**store),
    )  # fmt: skip
    return notary_walls(settings)


def judged(walls: Walls, name: str, *arguments: int) -> int:
    """Return the filter's verdict on a system call."""
    number = number_of(name)
    assert number is not None
    return outcome(decoded(walls.filter), number, *arguments)


def reached(walls: Walls, folder: Path) -> dict[str, int]:
    """Places below this folder, and what may be done there."""
    return {
        str(Path(place.path).relative_to(folder)): place.rights for place in walls.places
        if Path(place.path).is_relative_to(folder)
    }  # fmt: skip


def test_a_notary_reaches_its_state_its_ledger_and_its_keys_and_no_network(tmp_path: Path) -> None:
    walls = walls_of(tmp_path)
    assert reached(walls, tmp_path) == {"state": CHANGE, "ledger": CHANGE, "keys": CHANGE}
    assert (walls.scope, set(walls.namespaces)) == (Scope(), ALONE)
    families = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
    assert [judged(walls, "socket", family, socket.SOCK_STREAM) for family in families] == [REFUSED] * 3
    assert judged(walls, "connect") == REFUSED
    assert judged(walls, "openat", 0, 0, os.O_RDWR) == ALLOW


@pytest.mark.parametrize("store", [{}, {"redis_url": "redis://127.0.0.1:7000"}], ids=["alone", "with a Redis"])
def test_a_notary_runs_no_program_dumps_nothing_and_knows_whose_its_files_are(
    tmp_path: Path, store: dict[str, Any]
) -> None:
    walls = walls_of(tmp_path, **store)
    assert [judged(walls, name) for name in ("execve", "ptrace", "bpf", "unshare")] == [KILL] * 4
    assert judged(walls, "listen") == REFUSED
    assert walls.limits == {resource.RLIMIT_CORE: 0}
    assert walls.checks_owners
    assert walls.has_environment


def test_a_notary_connects_to_the_port_of_its_redis_by_tcp_and_by_nothing_else(tmp_path: Path) -> None:
    walls = walls_of(tmp_path, redis_url="redis://127.0.0.1:7000")
    assert walls.scope == Scope(ports=(7000,))
    assert walls.namespaces == ALONE - {names.NETWORK_NAMESPACE}
    for family in (socket.AF_INET, socket.AF_INET6):
        assert judged(walls, "socket", family, socket.SOCK_STREAM | CLOSE_ON_EXEC) == ALLOW
        kinds = (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | CLOSE_ON_EXEC)
        assert [judged(walls, "socket", family, kind) for kind in kinds] == [REFUSED] * 3
    assert judged(walls, "socket", socket.AF_UNIX, socket.SOCK_STREAM) == REFUSED
    assert judged(walls, "connect") == ALLOW
    assert reached(walls, tmp_path).keys() == {"state", "ledger", "keys"}


def test_a_notary_with_a_redis_at_a_unix_socket_has_that_file_and_no_network(tmp_path: Path) -> None:
    path, password = tmp_path / "run" / "redis.sock", tmp_path / "secret" / "password"
    walls = walls_of(tmp_path, redis_url=f"unix://{path}", redis_password_file=str(password))
    assert (walls.scope, set(walls.namespaces)) == (Scope(), ALONE)
    assert judged(walls, "socket", socket.AF_UNIX, socket.SOCK_STREAM | CLOSE_ON_EXEC) == ALLOW
    assert judged(walls, "socket", socket.AF_UNIX, socket.SOCK_DGRAM) == REFUSED
    assert judged(walls, "socket", socket.AF_INET, socket.SOCK_STREAM) == REFUSED
    assert judged(walls, "connect") == ALLOW
    assert reached(walls, tmp_path) == {
        "state": CHANGE, "ledger": CHANGE, "keys": CHANGE, "secret": READ, "run/redis.sock": READ_FILES | WRITE_FILES,
    }  # fmt: skip


def test_certificates_are_read_where_tls_needs_them(tmp_path: Path) -> None:
    file = tmp_path / "run" / "ca.pem"
    outside = set(outside_places())
    by_system = walls_of(tmp_path, redis_url="rediss://127.0.0.1:7000")
    by_file = walls_of(tmp_path, redis_url="rediss://127.0.0.1:7000", redis_ca_file=str(file))
    without = walls_of(tmp_path, redis_url="redis://127.0.0.1:7000", redis_ca_file=str(file))
    assert outside <= set(by_system.places)
    assert reached(by_file, tmp_path)["run/ca.pem"] == READ_FILES
    assert not outside & set(by_file.places)
    assert "run/ca.pem" not in reached(without, tmp_path)
    assert not outside & set(without.places)


def test_a_notary_with_a_postgresql_has_its_socket_or_its_port_and_the_certificate_that_it_is_held_against(
    tmp_path: Path,
) -> None:
    run, file = tmp_path / "run", tmp_path / "secret" / "ca.pem"
    by_socket = walls_of(tmp_path, LedgerSettings(url=f"postgresql://ann@/anns?host={run}"))
    assert (by_socket.scope, set(by_socket.namespaces)) == (Scope(), ALONE)
    assert judged(by_socket, "socket", socket.AF_UNIX, socket.SOCK_STREAM) == ALLOW
    assert judged(by_socket, "socket", socket.AF_INET, socket.SOCK_STREAM) == REFUSED
    assert reached(by_socket, tmp_path) == {
        "state": CHANGE, "keys": CHANGE, "run/.s.PGSQL.5432": READ_FILES | WRITE_FILES,
    }  # fmt: skip
    by_port = walls_of(tmp_path, LedgerSettings(url="postgresql://ann@127.0.0.1:7001/anns", ca_file=str(file)))
    assert by_port.scope == Scope(ports=(7001,))
    assert judged(by_port, "socket", socket.AF_INET, socket.SOCK_STREAM) == ALLOW
    assert judged(by_port, "socket", socket.AF_UNIX, socket.SOCK_STREAM) == REFUSED
    assert reached(by_port, tmp_path) == {"state": CHANGE, "keys": CHANGE, "secret/ca.pem": READ_FILES}


def test_a_reader_has_the_three_files_of_its_database_and_little_of_everything(tmp_path: Path) -> None:
    walls = reader_walls(tmp_path / "ledger")
    assert reached(walls, tmp_path) == {
        "ledger": READ_FILES, "ledger-wal": READ_FILES, "ledger-shm": READ_FILES | WRITE_FILES,
    }  # fmt: skip
    assert len(walls.places) == 3
    assert walls.namespaces == ALONE | {names.MOUNT_NAMESPACE}
    assert walls.limits == {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: 16, resource.RLIMIT_NPROC: 0}
    allowed = ("openat", "lseek", "pread64", "pwrite64", "ftruncate", "geteuid")
    assert [judged(walls, name) for name in allowed] == [ALLOW] * len(allowed)
    assert judged(walls, "fchmod") == refusal(errno.EPERM)
    assert [judged(walls, name) for name in ("socket", "unlink", "rename", "execve", "clone")] == [KILL] * 5
