"""Gateways on whose core a fault falls: with a Redis, with an OPA, and with the embedded database."""

import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx

from tests.faults.between import Between
from tests.faults.table.opa import OPA
from tests.faults.table.redis import REDIS
from tests.faults.table.sqlite import SQLITE
from tests.faults.walk import Stage
from tests.support.gateway import Bearer, config_for, gateway
from tests.support.ledger_file import wait_settled
from tests.support.manifests import patient
from tests.support.opa import Opa, opa
from tests.support.redis_server import RedisServer
from tests.support.upstream import Upstream, upstream

MIB = 1 << 20
LOCKED_SECONDS = 0.3


def digest(agent: Bearer) -> httpx.Response:
    """A call that needs the core alone."""
    return agent.execute("text_digest", {"text": "x"})


def payment(agent: Bearer, mark: str) -> httpx.Response:
    """A call that is held."""
    return agent.execute("payment_transfer", {"to": mark, "amount_cents": 1, "currency": "EUR"})


def transfers(up: Upstream, mark: str) -> int:
    """How often that one was made."""
    return sum(seen.path == "/v1/transfers" and seen.json()["to"] == mark for seen in list(up.seen))


@contextmanager
def redis_stage(folder: Path) -> Iterator[list[Stage]]:
    """By TCP to a real Redis."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        server = RedisServer(folder / "redis")
        stack.callback(server.close)
        between = Between(("127.0.0.1", server.port))
        stack.callback(between.close)
        store = f'\n[store]\nredis_url = "redis://127.0.0.1:{between.port}"\n'
        config = config_for(up.address, patient(folder / "actions")) + store
        gate = stack.enter_context(gateway(folder, config))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            if fault == "read-only":
                server.ask("REPLICAOF", "127.0.0.1", "1")
                yield
                server.ask("REPLICAOF", "NO", "ONE")
            elif fault == "full":
                server.ask("CONFIG", "SET", "maxmemory", "1")
                yield
                server.ask("CONFIG", "SET", "maxmemory", "0")
            elif fault == "loses its data":
                server.ask("FLUSHALL")
                yield
            else:
                with between.failing(fault):
                    yield

        yield [
            Stage(
                REDIS, gate, failing, digest, payment, lambda mark: transfers(up, mark),
                asked=lambda: between.count(b"EVALSHA"),
            )
        ]  # fmt: skip


@contextmanager
def opa_stage(folder: Path) -> Iterator[list[Stage]]:
    """By TCP to a real OPA; a second one, empty, waits to take its place."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        one, other = (stack.enter_context(opa(folder / name, is_tcp=True)) for name in ("one", "other"))
        between = Between(_place(one))
        stack.callback(between.close)
        config = config_for(up.address, patient(folder / "actions") + f'opa_url = "http://127.0.0.1:{between.port}"\n')
        gate = stack.enter_context(gateway(folder, config))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            if fault == "loses its data":
                between.lead_to(_place(other))
                yield
                assert other.data("acl") == one.data("acl"), "another one decides by the same lists"
            else:
                with between.failing(fault):
                    yield

        yield [
            Stage(
                OPA, gate, failing, digest, payment, lambda mark: transfers(up, mark),
                asked=lambda: between.count(b"POST /v1/data/gateway/decision"),
            )
        ]  # fmt: skip


def _place(one: Opa) -> tuple[str, int]:
    return "127.0.0.1", int(one.url.rpartition(":")[2])


@contextmanager
def sqlite_stage(folder: Path) -> Iterator[list[Stage]]:
    """On a small disk of its own."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        volume = stack.enter_context(mounted(folder / "volume"))
        ledger = volume / "ledger.sqlite3"
        tables = f'[ledger]\npath = "{ledger}"\nmin_free_bytes = {16 * MIB}\n'
        gate = stack.enter_context(gateway(folder, config_for(up.address, patient(folder / "actions")) + tables))

        @contextmanager
        def failing(fault: str) -> Iterator[None]:
            with {
                "hangs": lambda: locked(ledger), "slow": lambda: locked_for_a_moment(ledger),
                "garbage": lambda: without_proofs(ledger), "full": lambda: filled(volume),
                "loses its data": lambda: moved_away(ledger),
            }[fault]():  # fmt: skip
                yield

        yield [Stage(SQLITE, gate, failing, digest, payment, lambda mark: transfers(up, mark))]


def can_mount() -> bool:
    """Only root may."""
    return os.geteuid() == 0


@contextmanager
def mounted(folder: Path) -> Iterator[Path]:
    """A folder on a disk of its own of 48 MiB; where that can't be, a folder."""
    folder.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={48 * MIB},mode=0700", "test", str(folder)]
    is_mounted = can_mount() and subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert is_mounted or not can_mount(), "root can't mount here"
    try:
        yield folder
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def _stranger(ledger: Path) -> sqlite3.Connection:
    return sqlite3.connect(ledger, isolation_level=None, timeout=60, check_same_thread=False)


@contextmanager
def locked(ledger: Path) -> Iterator[None]:
    """Hold the lock as another process does."""
    with closing(_stranger(ledger)) as connection:
        connection.execute("begin immediate")
        yield
        connection.execute("rollback")


@contextmanager
def locked_for_a_moment(ledger: Path) -> Iterator[None]:
    """And lets go."""
    with closing(_stranger(ledger)) as connection:
        connection.execute("begin immediate")
        timer = threading.Timer(LOCKED_SECONDS, lambda: connection.execute("rollback"))
        timer.start()
        yield
        timer.join()


@contextmanager
def without_proofs(ledger: Path) -> Iterator[None]:
    """The table can't be found."""
    wait_settled(ledger)
    with closing(_stranger(ledger)) as connection:
        connection.execute("alter table proofs rename to proofs_away")
        yield
        connection.execute("alter table proofs_away rename to proofs")


@contextmanager
def filled(volume: Path) -> Iterator[None]:
    """Next to nothing is free."""
    ballast = volume / "ballast"
    ballast.write_bytes(bytes(36 * MIB))
    yield
    ballast.unlink()


@contextmanager
def moved_away(ledger: Path) -> Iterator[None]:
    """The file is elsewhere."""
    away = ledger.with_suffix(".away")
    ledger.rename(away)
    yield
    assert not ledger.exists(), "it is not made anew"
    away.rename(ledger)
