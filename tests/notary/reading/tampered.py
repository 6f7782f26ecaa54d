"""A ledger of some events, in the hands of an attacker who can write its file."""

import sqlite3
from contextlib import closing
from pathlib import Path

from contract.audit import ChainReport
from notary.reading.verify import Break
from notary.reading.whole import WholeWalk
from tests.notary.running import Running, execute
from tests.notary.samples import make_note, record_call

EVENTS = 12
MIDDLE = 6
INTENTS = EVENTS // 2
CHANGE = {"fuel_consumed": 1234}


class Tampered:
    """A ledger of EVENTS events, in the hands of an attacker who can write the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection:
            rows = connection.execute("SELECT event_id, bytes FROM events ORDER BY seq").fetchall()
        self.ids = ["", *(row[0] for row in rows)]
        self.bytes = [b"", *(row[1] for row in rows)]

    def execute(self, statement: str, *values: object) -> None:
        execute(self.path, statement, *values)

    def put(self, seq: int, stored: bytes) -> None:
        self.execute("UPDATE events SET bytes = ? WHERE seq = ?", stored, seq)

    def verify(self) -> ChainReport:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
            walk = WholeWalk()
            while walk.step(connection):
                pass
            return walk.report()

    def broken_at(self, seq: int | None, *words: str) -> None:
        """The walk stops at that event, for a reason that holds these words; all before it was found whole."""
        report = self.verify()
        assert not report.intact
        assert report.broken_at == ("head" if seq is None else self.ids[seq])
        assert report.reason is not None
        for word in words:
            assert word in report.reason


def found(broken: Break | None) -> Break:
    """The break that a walk has come to."""
    assert broken is not None
    return broken


def write_events(notary: Running) -> None:
    for number in range(EVENTS):
        notary.clock.time += 1
        if number % 2:
            record_call(notary.front)
        else:
            notary.front.ask(make_note(reason=f"number {number} é", change=CHANGE))
    notary.stop()
