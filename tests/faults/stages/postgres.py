"""A gateway whose ledger is in a PostgreSQL, and its store in a Redis that lives all the while.

The tables lie on a small disk of their own, which can be filled; an older copy of the database stands ready to take its
place.
"""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.faults.between import Between
from tests.faults.stages.core import can_mount, digest, filled, mounted, payment, transfers
from tests.faults.table.postgres import POSTGRES
from tests.faults.walk import Stage
from tests.support.gateway import Gateway, Prover, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.postgres_server import USER, PostgresServer
from tests.support.redis_server import RedisServer
from tests.support.upstream import upstream

LEDGER, OLDER, NEWER = "ledger", "older", "newer"


@contextmanager
def postgres_stage(folder: Path) -> Iterator[list[Stage]]:
    """By TCP to a real PostgreSQL."""
    with ExitStack() as stack:
        up = stack.enter_context(upstream())
        store, server = RedisServer(folder / "redis"), PostgresServer()
        stack.callback(store.close)
        stack.callback(server.close)
        volume = stack.enter_context(mounted(server.folder / "volume"))
        make_database(server, volume)
        between = Between(("127.0.0.1", server.port))
        stack.callback(between.close)
        tables = f'\n[store]\nredis_url = "{store.settings.redis_url}"\n'
        tables += f'[ledger]\nurl = "postgresql://{USER}@127.0.0.1:{between.port}/{LEDGER}"\n'
        gate = stack.enter_context(gateway(folder, config_for(up.address, patient(folder / "actions")) + tables))
        change(server, LEDGER, f"CREATE DATABASE {OLDER} TEMPLATE {LEDGER}", LEDGER)
        wait_for(gate.is_ready, "its ledger")

        of_the_server = {
            "read-only": lambda: read_only(server, gate), "full": lambda: full(volume, gate),
            "loses its data": lambda: put_back(server, gate),
        }  # fmt: skip

        def failing(fault: str) -> AbstractContextManager[None]:
            return of_the_server[fault]() if fault in of_the_server else between.failing(fault)

        yield [
            Stage(
                POSTGRES, gate, failing, digest, payment, lambda mark: transfers(up, mark),
                asked=lambda: between.count(b"_pg3_"),  # the client's name for each statement
            )
        ]  # fmt: skip


def make_database(server: PostgresServer, volume: Path) -> None:
    """Its tables lie on the volume, and nothing else of the server does."""
    place = volume / "tables"
    place.mkdir(mode=0o700)
    if can_mount():
        volume.chmod(0o755)
        shutil.chown(place, "nobody", "nogroup")
    server.ask(f"CREATE TABLESPACE small LOCATION '{place}'")
    server.ask(f"CREATE DATABASE {LEDGER} TABLESPACE small")


def change(server: PostgresServer, database: str, statement: str, name: str) -> None:
    """Change a database while it has no sessions; it is called `name` afterwards. Its clients can connect again."""
    server.ask(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    server.ask("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s", database)
    server.ask(statement)
    server.ask(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def rename(server: PostgresServer, database: str, name: str) -> None:
    """Also while sessions are connected: they are ended."""
    change(server, database, f"ALTER DATABASE {database} RENAME TO {name}", name)


def units(server: PostgresServer) -> int:
    """How many its ledger has."""
    return int(server.ask("SELECT number FROM turn", database=LEDGER)[0][0])


@contextmanager
def put_back(server: PostgresServer, gate: Gateway) -> Iterator[None]:
    """The older one takes its place, and gets no unit."""
    told = len(gate.log.read_text())
    rename(server, LEDGER, NEWER)
    rename(server, OLDER, LEDGER)
    before = units(server)
    wait_for(lambda: "is not as it was" in gate.log.read_text()[told:], "a look at it")
    yield
    assert units(server) == before, "it is not gone on with"
    rename(server, LEDGER, OLDER)
    rename(server, NEWER, LEDGER)


@contextmanager
def read_only(server: PostgresServer, gate: Gateway) -> Iterator[None]:
    """Make all sessions read-only, also the notary's, which learns of it a moment later."""
    _set_read_only(server, "on")
    wait_for(lambda: not is_lease_given(gate), "a session that is read-only")
    yield
    _set_read_only(server, "off")


def _set_read_only(server: PostgresServer, value: str) -> None:
    with server.connect("postgres") as connection:
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def full(volume: Path, gate: Gateway) -> Iterator[None]:
    """Fill the disk of its tables and the free space of their pages: neither the event of a lease nor the intent of a
    call fits."""
    agent = gate.agent()

    def is_refused() -> bool:
        return not is_lease_given(gate) and digest(agent).status_code == 503

    with filled(volume):
        wait_for(is_refused, "tables without room")
        yield


def is_lease_given(gate: Gateway) -> bool:
    """False where its event can't be written."""
    gate.paces.leases.wait()
    status = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": Prover().jwk}).status_code
    assert status in (200, 503), status
    return bool(status == 200)
