"""Notaries that share a real PostgreSQL and a real Redis."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.settings import StoreSettings
from tests.notary.running import UNDISTURBED, Running
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

StartNotary = Callable[..., Running]
_prefixes = itertools.count()


@pytest.fixture
def store(redis_server: RedisServer) -> StoreSettings:
    """The Redis of this test, with a prefix of its own."""
    return msgspec.structs.replace(redis_server.settings, redis_prefix=f"postgres-{next(_prefixes)}")


@pytest.fixture
def start(
    request: pytest.FixtureRequest, postgres_server: PostgresServer, store: StoreSettings, database: str, tmp_path: Path
) -> Iterator[StartNotary]:
    """Starts a notary; those of one test share store, ledger and keys."""
    started: list[Running] = []
    is_patient = "patient_backends" in request.fixturenames
    ledger = postgres_server.settings(database)

    def one(folder: str = "state", **settings: Any) -> Running:
        own = {"limits": UNDISTURBED, "is_patient": is_patient, "store": store, "ledger": ledger, "dev_mode": True}
        given: dict[str, Any] = own | settings
        if started and not (tmp_path / folder).exists():
            (tmp_path / folder).mkdir(mode=0o700)
            shutil.copytree(started[0].folder / "keys", tmp_path / folder / "keys")
            for file in started[0].folder.glob("*.jwks.json"):
                shutil.copy2(file, tmp_path / folder)
        started.append(Running(tmp_path / folder, **given))
        return started[-1]

    yield one
    for running in started:
        running.close()


@pytest.fixture
def notary(start: StartNotary) -> Running:
    """One notary."""
    return start()
