"""A ledger that was changed while the gateway was stopped: the gateway that runs on it says so, and where, or it does
not start."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ipc.process.exits import Exit
from tests.support.gateway import Gateway, gateway
from tests.support.manifests import patient
from tests.support.processes import attempt
from tests.support.supervised import told

CALLS = 6


def lines(gate: Gateway, message: str) -> list[dict[str, Any]]:
    """The log lines with this message."""
    return told(gate.log.read_text(), message)


def delete(ledger: Path, which: str) -> int:
    """Delete events; how many there were."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
        connection.execute(f"DELETE FROM events WHERE {which}", (count,))
    return int(count)


def test_what_was_removed_is_found_by_the_next_start_at_the_end_and_by_a_walk_elsewhere(tmp_path: Path) -> None:
    ledger, settings = tmp_path / "state" / "ledger.sqlite3", patient(tmp_path / "actions")
    with gateway(tmp_path, settings) as gate:
        agent = gate.agent()
        for number in range(CALLS):
            assert agent.execute("text_digest", {"text": str(number)}).status_code == 200
        before = gate.operator().get("/v1/audit/verify").json()
        assert (before["intact"], before["broken_at"]) == (True, None)
        assert lines(gate, "the chain is intact")[-1]["events"] == before["events_checked"] > CALLS
    assert not ledger.with_name("ledger.sqlite3-wal").exists(), "whole in one file once it has stopped"
    whole = ledger.read_bytes()
    count = delete(ledger, "seq > ? - 2")
    ended = attempt("dev", "--listen", "127.0.0.1:0", "--state-dir", str(ledger.parent), "--config",
                    str(tmp_path / "gateway.toml"))  # fmt: skip
    assert ended.returncode == Exit.ROLLED_BACK, ended.stderr
    assert f"has {count} events, and the last one there has number {count - 2}" in ended.stderr
    assert "gateway ledger accept-rollback" in ended.stderr
    ledger.write_bytes(whole)
    delete(ledger, "seq = ? - 2")
    with gateway(tmp_path, settings) as gate:
        report = gate.operator().get("/v1/audit/verify").json()
        assert (report["intact"], report["events_checked"]) == (False, count - 3)
        assert report["total_events"] > count, "the head has gone on from where it was"
        assert lines(gate, "the chain is broken")[-1]["broken_at"] == report["broken_at"]
        assert 'gate_audit_verifications_total{outcome="broken"} 1.0' in gate.operator().get("/metrics").text
