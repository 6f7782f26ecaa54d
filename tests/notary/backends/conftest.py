"""Notaries that have their store in a real Redis, and a way to it that loses answers."""

import itertools
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ipc.settings import LedgerSettings, StoreSettings
from tests.notary.backends.losing import SILENT, Losing
from tests.notary.conftest import StartNotary
from tests.notary.running import UNDISTURBED, Running
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer

_prefixes = itertools.count()


@pytest.fixture
def prefix() -> str:
    """The prefix of this test's keys in Redis."""
    return f"test-{next(_prefixes)}"


@pytest.fixture
def store(redis_server: RedisServer, prefix: str) -> StoreSettings:
    """The Redis of this test, with its prefix."""
    return replace(redis_server.settings, redis_prefix=prefix)


@pytest.fixture
def ledger() -> LedgerSettings:
    """A file of each notary's own."""
    return LedgerSettings()


@pytest.fixture
def start(
    request: pytest.FixtureRequest, store: StoreSettings, ledger: LedgerSettings, tmp_path: Path
) -> Iterator[StartNotary]:
    """Starts a notary; those of one test share their store, and with a ledger that is no file their keys too."""
    started: list[Running] = []
    is_patient = "patient_backends" in request.fixturenames

    def one(folder: str = "state", **settings: Any) -> Running:
        own = {"limits": UNDISTURBED, "is_patient": is_patient, "store": store, "ledger": ledger, "dev_mode": True}
        given: dict[str, Any] = own | settings
        if ledger.url is not None and started and not (tmp_path / folder).exists():
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


@pytest.fixture
def way(redis_server: RedisServer) -> Iterator[Losing]:
    """To the Redis."""
    way = Losing(redis_server.port)
    yield way
    way.close()


@pytest.fixture
def distant(request: pytest.FixtureRequest, start: StartNotary, store: StoreSettings, way: Losing) -> Running:
    """A notary that goes this way. It waits as long as it takes, unless an answer does not come in this test."""
    given = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return start(is_patient=given.get("how") != SILENT, store=replace(store, redis_url=f"redis://127.0.0.1:{way.port}"))


@contextmanager
def frozen(server: RedisServer | PostgresServer) -> Iterator[None]:
    """Within the block it takes connections, and says nothing."""
    server.freeze()
    try:
        yield
    finally:
        server.thaw()
