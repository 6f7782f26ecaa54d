"""What all tests of the front share."""

import pytest

from frontend.configuration import access
from frontend.files import exclusive
from frontend.health import pulse
from frontend.policy import embedded, process
from frontend.pool import channel, profile
from notary.backends import sqlite as database
from tests.support.played_policy import PATIENCE


@pytest.fixture(autouse=True)
def _small_wal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of short tests need not write a megabyte for each of their files before they begin."""
    monkeypatch.setattr(database, "RESERVED_PAGES", 0)


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clock is the machine's, no answer is late because the machine stood still for some seconds.

    Tests whose point is an answer that is late set what they wait for themselves.
    """
    if "autojump_clock" in request.fixturenames:
        return
    monkeypatch.setattr(access, "TURN_SECONDS", PATIENCE)
    monkeypatch.setattr(exclusive, "TURN_SECONDS", PATIENCE)
    monkeypatch.setattr(exclusive, "WRITE_SECONDS", PATIENCE)
    monkeypatch.setattr(pulse, "OVERDUE_SECONDS", PATIENCE)
    monkeypatch.setattr(process, "SEND_SECONDS", PATIENCE)
    monkeypatch.setattr(channel, "GREETING_SECONDS", PATIENCE)
    monkeypatch.setattr(profile, "ASK_SECONDS", PATIENCE)
    monkeypatch.setattr(profile, "LEAVE_SECONDS", PATIENCE)
    for name in ("QUESTION_SECONDS", "STALL_SECONDS", "LOAD_SECONDS", "FIRST_LOAD_SECONDS", "_SUCCESSOR_SECONDS"):
        monkeypatch.setattr(embedded, name, PATIENCE)
