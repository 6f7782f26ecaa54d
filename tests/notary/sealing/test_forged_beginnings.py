"""The first events of a ledger are taken out as if they had been sealed, by someone who can write its file."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipc.operations.evidence import ReadCheckpoint
from ipc.texts.canonical import canonical_bytes
from notary.ledger.chain import event_hash
from notary.ledger.cut import BEGINNING, END, Cut, write_cut
from notary.ledger.head import Head, write_head
from notary.tree import tiles
from notary.tree.merkle import leaf_hash
from notary.tree.tiles import Tree
from tests.notary.running import Running
from tests.notary.samples import NOW
from tests.notary.sealing.sealed_ledger import keys_of, verify, write_calls

GONE = 4
"""Events that are taken out."""


def take_out(ledger: sqlite3.Connection) -> Cut:
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
    return cut


def append_sealing(ledger: sqlite3.Connection, cut: Cut, **signature: str) -> None:
    """Append an event that says that it was sealed there."""
    seq, stored = ledger.execute("SELECT seq, bytes FROM events ORDER BY seq DESC LIMIT 1").fetchone()
    told = {"segment": cut.segment, "digest": cut.digest, "leaves": cut.leaves, "events": cut.events}
    event = {
        "event_id": "evt_forged", "event_type": "LedgerSealed", "timestamp": json.loads(stored)["timestamp"],
        "trace_id": "trc_forged", "principal": "gateway", "decision": "allow", "prev_hash": event_hash(stored),
        "change": told | {"intents": cut.intents, "until": cut.until} | signature,
    }  # fmt: skip
    names = ("event_id", "event_type", "trace_id", "principal", "decision")
    (at,) = ledger.execute("SELECT time FROM events WHERE seq = ?", (seq,)).fetchone()
    data, size = canonical_bytes(event), Tree(ledger).size
    ledger.execute(
        f"INSERT INTO events (seq, {', '.join(names)}, time, bytes, leaf) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (seq + 1, *(event[name] for name in names), at, data, size),
    )
    tiles.append(ledger, [leaf_hash(data)])
    write_head(ledger, Head(seq + 1, event_hash(data)))


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


FALSE = {"signature": "00" * 64}


@pytest.mark.parametrize("signature", [{}, FALSE | {"signing_key_id": "none"}, FALSE])
def test_a_cut_that_a_forged_event_tells_of_is_found_by_the_receipt_keys(
    notary: Running, tmp_path: Path, signature: dict[str, str]
) -> None:
    write_calls(notary, NOW)
    notary.stop()
    keys = keys_of(notary, tmp_path / "keys.json")
    own = {"signing_key_id": json.loads(keys.read_text())["keys"][0]["kid"]} if signature == FALSE else {}
    with closing(sqlite3.connect(notary.path)) as ledger, ledger:
        append_sealing(ledger, take_out(ledger), **signature, **own)
    ran = verify(notary.path, "--keys", keys)
    assert (ran.returncode, "4 events before it were sealed is not signed" in ran.stdout) == (8, True), ran.stdout
    notary.start()
    notary.front.ask(ReadCheckpoint())
    notary.stop()
    assert verify(notary.path, "--keys", keys).returncode == 8, "the gateway's next checkpoint changes nothing of it"
