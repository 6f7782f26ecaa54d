"""Ledgers to tamper with: each written once, and every test has a copy of its own."""

import shutil
from pathlib import Path

import pytest

from tests.notary.reading.tampered import Tampered, write_events
from tests.notary.reading.tampering import Folder, killed, recorded
from tests.notary.reading.test_long_walks import grown
from tests.notary.running import Running

MANY = 70_000
"""More leaves than two levels of tiles hold."""


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of a notary that has recorded EVENTS events and has ended."""
    notary = Running(tmp_path_factory.mktemp("written") / "state")
    try:
        write_events(notary)
    finally:
        notary.close()
    return notary.folder


@pytest.fixture
def ledger_file(written: Path, tmp_path: Path) -> Tampered:
    """Its ledger."""
    shutil.copytree(written, tmp_path / "written")
    return Tampered(tmp_path / "written" / "ledger.sqlite3")


@pytest.fixture(scope="session")
def long_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a ledger of MANY events."""
    path = tmp_path_factory.mktemp("long") / "ledger.sqlite3"
    grown(path, MANY)
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The files of a gateway that was stopped."""
    return recorded(tmp_path_factory.mktemp("recorded") / "state")


@pytest.fixture(scope="session")
def torn(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """The files of a gateway that was killed."""
    return killed(tmp_path_factory.mktemp("killed"))


@pytest.fixture
def folder(whole: Folder, tmp_path: Path) -> Folder:
    """A copy of it that the test may change."""
    return whole.copy(tmp_path / "state")


@pytest.fixture
def left(torn: Folder, tmp_path: Path) -> Folder:
    """A copy of what the killed one left, which the test may change."""
    return torn.copy(tmp_path / "left")
