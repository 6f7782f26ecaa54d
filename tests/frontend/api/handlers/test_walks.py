"""GET /v1/audit/verify over a ledger that somebody changed while no front had it open."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.front_core import front_core


@pytest.mark.parametrize("column", ["principal", "event_id"])
async def test_a_column_that_was_changed_is_named_with_its_event(tmp_path: Path, column: str) -> None:
    async with front_core(tmp_path, workers=0) as core:
        for _ in range(5):
            await core.agent()
        assert (await core.operate("GET", "/v1/audit/verify"))[1]["intact"]
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite3")) as connection, connection:
        (event_id,) = connection.execute("SELECT event_id FROM events WHERE seq = 3").fetchone()
        connection.execute(f"UPDATE events SET {column} = ? WHERE seq = 3", (7 if column == "time" else "changed",))
    async with front_core(tmp_path, workers=0) as core:
        status, report = await core.operate("GET", "/v1/audit/verify")
        assert (status, report["intact"], report["events_checked"]) == (200, False, 2)
        assert report["broken_at"] == ("changed" if column == "event_id" else event_id)
        assert report["reason"] == f"column {column} does not say what the event says"
        assert core.services.metrics.verifications.value("broken") == 1
