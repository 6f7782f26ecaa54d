"""Notaries that have their store in a real Redis."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.settings import StoreSettings
from tests.notary.running import UNDISTURBED, Running
from tests.support.redis_server import RedisServer

StartNotary = Callable[..., Running]
_prefixes = itertools.count()


@pytest.fixture
def prefix() -> str:
    """The prefix of this test's keys."""
    return f"test-{next(_prefixes)}"


@pytest.fixture
def store(redis_server: RedisServer, prefix: str) -> StoreSettings:
    """The Redis of this test, with its prefix."""
    return msgspec.structs.replace(redis_server.settings, redis_prefix=prefix)


@pytest.fixture
def start(request: pytest.FixtureRequest, store: StoreSettings, tmp_path: Path) -> Iterator[StartNotary]:
    """Starts a notary of its own ledger; those of one test share their store."""
    started: list[Running] = []
    is_patient = "patient_backends" in request.fixturenames

    def one(folder: str = "state", **settings: Any) -> Running:
        own = {"limits": UNDISTURBED, "is_patient": is_patient, "store": store, "dev_mode": True}
        given: dict[str, Any] = own | settings
        started.append(Running(tmp_path / folder, **given))
        return started[-1]

    yield one
    for running in started:
        running.close()


@pytest.fixture
def notary(start: StartNotary) -> Running:
    """One notary."""
    return start()
