"""Changes of more than one column by an attacker who can write a state folder (test_tamper_table.py)."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ipc.texts.canonical import canonical_bytes, sha256_hex
from notary.ledger import page_ring
from notary.ledger.page_ring import RingEntry
from notary.ledger.receipts import NOT_SIGNED
from notary.signing.make_keys import make_keys
from tests.notary.reading.tampering import Folder
from tests.notary.reading.test_kept_checkpoints import cut_the_tail, forged


def sql(statement: str) -> Callable[[Folder], object]:
    return lambda folder: folder.change(lambda file: file.execute(statement))


def put_back(folder: Folder) -> None:
    shutil.copy(folder.early / "ledger.sqlite3", folder.ledger)


def put_back_whole(folder: Folder) -> None:
    put_back(folder)
    shutil.copy(folder.early / "checkpoints", folder.checkpoints)


def compute_anew(folder: Folder) -> None:
    forged(folder.ledger, cut_the_tail)


def compute_anew_and_remove(folder: Folder) -> None:
    compute_anew(folder)
    folder.checkpoints.unlink()


def shorten(folder: Folder) -> None:
    lines = folder.checkpoints.read_bytes().splitlines(keepends=True)
    folder.checkpoints.write_bytes(b"".join(lines[:-1]))


def change_line(folder: Folder, at: int) -> None:
    lines = folder.checkpoints.read_text().splitlines(keepends=True)
    lines[at] = lines[at].replace("unresolved=", "unresolved=1")
    folder.checkpoints.write_text("".join(lines))


def put_early_file(folder: Folder) -> None:
    shutil.copy(folder.early / "checkpoints", folder.checkpoints)


def exchange_own_key(folder: Folder) -> None:
    (folder.path / "keys" / "checkpoint.pem").unlink()
    (folder.path / "checkpoint-keys.jwks.json").unlink()
    make_keys(folder.path)


def exchange_receipt_key(folder: Folder) -> None:
    """For another one under the same id."""
    listed = json.loads(folder.keys.read_text())
    other = json.loads((folder.early / "checkpoint-keys.jwks.json").read_text())
    listed["keys"][0]["x"] = other["keys"][0]["x"]
    folder.given_keys = folder.path / "given.jwks.json"
    folder.given_keys.write_text(json.dumps(listed))


def give_other_keys(folder: Folder) -> None:
    folder.given_keys = folder.early / "checkpoint-keys.jwks.json"


def sign_another_receipt(folder: Folder) -> None:
    """A valid receipt of the same call, signed with the gateway's own key."""
    ((seq, stored),) = folder.rows("SELECT seq, bytes FROM receipts ORDER BY seq LIMIT 1")
    assert isinstance(stored, bytes)
    key = load_pem_private_key((folder.path / "keys" / "receipt.pem").read_bytes(), None)
    assert isinstance(key, Ed25519PrivateKey)
    fields = json.loads(stored) | {"finished_at": "2026-09-21T14:13:59.000Z"}
    signed = canonical_bytes({name: value for name, value in fields.items() if name not in NOT_SIGNED})
    fields |= {"result_hash": sha256_hex(signed), "receipt_signature": key.sign(signed).hex()}
    folder.change(
        lambda file: file.execute("UPDATE receipts SET bytes = ? WHERE seq = ?", (canonical_bytes(fields), seq))
    )


def deliver_twice(folder: Folder) -> None:
    """The receipt of one call beside the event of another, ids and all."""
    rows = folder.rows("SELECT bytes, receipt_id, seq FROM receipts ORDER BY seq LIMIT 2")
    folder.change(lambda file: file.execute("DELETE FROM receipts WHERE seq IN (?, ?)", [row[2] for row in rows]))
    (one, one_id, first), (other, other_id, second) = rows
    folder.change(lambda file: file.executemany("INSERT INTO receipts (seq, receipt_id, bytes) VALUES (?, ?, ?)", [
        (first, other_id, other), (second, one_id, one),
    ]))  # fmt: skip


def say_that_an_ended_one_waits(folder: Folder) -> None:
    """Instead of one that does, so that there are as many as before."""
    folder.change(lambda file: file.execute(
        "UPDATE unresolved SET (intent_id, seq) = (SELECT intent_id, seq FROM intents WHERE seq = 2)"
        " WHERE seq = (SELECT max(seq) FROM unresolved)"
    ))  # fmt: skip


def hide(folder: Folder) -> None:
    with closing(sqlite3.connect(folder.ledger, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, '(principal, time)', '(trace_id, time)') "
                           "WHERE name = 'events_by_principal'")  # fmt: skip


def change_journal(folder: Folder, change: Callable[[RingEntry], bool]) -> None:
    """Change the first entry that waits and that can be changed so."""

    def write(file: sqlite3.Connection) -> None:
        unsettled = page_ring.read(file)
        for number, entry in enumerate(unsettled.entries, unsettled.settled + 1):
            if change(entry):
                (slot,) = next(file.execute("SELECT slot FROM journal WHERE substr(bytes, 1, 8) = ?",
                                            (number.to_bytes(8, "big"),)))  # fmt: skip
                page_ring.write(file, page_ring.pieces_of(entry, number), slot)
                return
        raise AssertionError("nothing waits that could be changed")

    folder.change(write)


def change_event(entry: RingEntry) -> bool:
    if not entry.events:
        return False
    *columns, stored = entry.events[0]
    entry.events[0] = (*columns, stored.replace(b"text_digest", b"text_dugest"))  # type: ignore[assignment]
    return True


def change_receipt(entry: RingEntry) -> bool:
    if not entry.receipts:
        return False
    *columns, stored = entry.receipts[0]
    entry.receipts[0] = (*columns, stored.replace(b"text_digest", b"text_dugest"))  # type: ignore[assignment]
    return True


def change_intent(entry: RingEntry) -> bool:
    if not entry.intents:
        return False
    intent_id, _, *columns = entry.intents[0]
    entry.intents[0] = (intent_id, "trc_other", *columns)  # type: ignore[assignment]
    return True


def give_a_place_too_many(entry: RingEntry) -> bool:
    entry.event_leaves.append(max(entry.event_leaves, default=0) + 1)
    return bool(entry.events)


def take_places(entry: RingEntry) -> bool:
    entry.event_leaves, entry.intent_leaves = [], []
    return bool(entry.events)


def cut_what_waits(folder: Folder) -> None:
    with closing(sqlite3.connect(folder.ledger)) as file, file:
        last = page_ring.read(file).last
        file.execute("UPDATE meta SET value = ? WHERE key = 'settled'", (str(last),))
