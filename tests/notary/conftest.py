"""Notaries for the tests of the notary."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notary.backends import sqlite as database
from tests.notary.running import Running
from tests.notary.samples import hooks
from tests.support.asking import Asker

StartNotary = Callable[..., Running]


@pytest.fixture(autouse=True)
def _small_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of short tests need not write a megabyte for each of their files before they begin."""
    monkeypatch.setattr(database, "RESERVED_PAGES", 0)


@pytest.fixture
def start_notary(tmp_path: Path) -> Iterator[StartNotary]:
    """Start a notary on a folder of the test, with these settings; it is stopped at the end."""
    started: list[Running] = []

    def start(folder: str = "state", **settings: object) -> Running:
        started.append(Running(tmp_path / folder, **settings))
        return started[-1]

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary that notifies nobody."""
    return start_notary()


@pytest.fixture
def front(notary: Running) -> Asker:
    """Its front."""
    return notary.front


@pytest.fixture
def telling(start_notary: StartNotary) -> Running:
    """A notary with two endpoints."""
    return start_notary(webhooks=hooks("chat", "pager"))
