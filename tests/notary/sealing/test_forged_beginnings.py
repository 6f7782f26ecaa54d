"""The first events of a ledger are taken out as if they had been sealed, by someone who can write its file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipc.operations.evidence import ReadCheckpoint
from notary.ledger.chain import event_hash
from notary.ledger.cut import BEGINNING, END, Cut, write_cut
from notary.tree.tiles import Tree
from tests.notary.running import Running
from tests.notary.samples import NOW
from tests.notary.sealing.sealed_ledger import keys_of, verify, write_calls

GONE = 4
"""Events that are taken out."""


def take_out(ledger: sqlite3.Connection) -> None:
    """Take the first events out, with all that belongs to them, and have the ledger say that they were sealed."""
    stored = [row[0] for row in ledger.execute("SELECT bytes FROM events WHERE seq <= ? ORDER BY seq", (GONE,))]
    (leaf,) = ledger.execute("SELECT leaf FROM events WHERE seq = ?", (GONE + 1,)).fetchone()
    (intents,) = ledger.execute("SELECT count(*) FROM intents WHERE leaf < ?", (leaf,)).fetchone()
    ended = sum("intent_id" in json.loads(event) for event in stored)
    cut = Cut(
        leaf, GONE, intents, event_hash(stored[-1]), Tree(ledger).root(leaf).hex(), open=intents - ended,
        until=json.loads(stored[-1])["timestamp"], segment="segment-forged.sqlite3", digest="sha256:00",
    )  # fmt: skip
    write_cut(ledger, BEGINNING, cut)
    for table, last in (("events", GONE), ("receipts", GONE), ("intents", intents)):
        ledger.execute(f"DELETE FROM {table} WHERE seq <= ?", (last,))


@pytest.mark.parametrize("has_end", [False, True])
def test_a_cut_that_no_event_tells_of_is_found(notary: Running, tmp_path: Path, has_end: bool) -> None:
    write_calls(notary, NOW)
    key = notary.front.ask(ReadCheckpoint()).keys[0]
    notary.stop()
    with closing(sqlite3.connect(notary.path)) as ledger, ledger:
        take_out(ledger)
        if has_end:  # as a segment, of which less is asked
            write_cut(ledger, END, Cut(1, 1))
    ran = verify(notary.path, "--keys", keys_of(notary, tmp_path / "keys.json"), "--checkpoint-key", key)
    assert (ran.returncode, "is broken" in ran.stdout) == (8, True), ran.stdout
    assert ("as a segment does" if has_end else "no event tells that the 4 events before it were sealed") in ran.stdout
