"""A forger who computes everything anew: what no ledger shows by itself, and what one kept checkpoint shows."""

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ipc.operations.evidence import ReadCheckpoint
from ipc.process.exits import Exit
from ipc.texts.canonical import sha256_hex
from notary.ledger.head import Head, write_head
from notary.ledger.leaves import INTENT_COLUMNS, intent_leaf
from notary.programs.offline import main
from notary.tree import tiles
from notary.tree.merkle import leaf_hash
from notary.tree.notes import verifier_key
from supervisor.programs import INTERPRETER
from tests.notary.reading.tampered import write_events
from tests.notary.running import ROOT, Running, execute
from tests.notary.samples import make_note

Change = Callable[[sqlite3.Connection], object]
TAIL = 8


def forged(path: Path, change: Change) -> None:
    """Change rows, and make chain, places, tree and checkpoints fit them."""
    with closing(sqlite3.connect(path)) as connection, connection:
        change(connection)
        link: str | None = None
        seqs = [seq for (seq,) in connection.execute("SELECT seq FROM events ORDER BY seq")]
        for place, seq in enumerate(seqs, 1):
            fields = msgspec.json.decode(
                connection.execute("SELECT bytes FROM events WHERE seq = ?", (seq,)).fetchone()[0]
            )
            stored = msgspec.json.encode(fields | {"prev_hash": link}, order="sorted")
            connection.execute("UPDATE events SET bytes = ?, seq = ? WHERE seq = ?", (stored, place, seq))
            connection.execute("UPDATE receipts SET seq = ? WHERE seq = ?", (place, seq))
            link = sha256_hex(stored)
        write_head(connection, Head(len(seqs), link))
        for place, (seq,) in enumerate(connection.execute("SELECT seq FROM intents ORDER BY seq").fetchall(), 1):
            connection.execute("UPDATE intents SET seq = ? WHERE seq = ?", (place, seq))
        connection.execute(
            "UPDATE unresolved SET seq = (SELECT seq FROM intents WHERE intent_id = unresolved.intent_id)"
        )
        leaves = [(leaf, "events", seq, data) for seq, leaf, data in
                  connection.execute("SELECT seq, leaf, bytes FROM events")]  # fmt: skip
        leaves += [(row[1], "intents", row[0], intent_leaf(row[2:])) for row in
                   connection.execute(f"SELECT seq, leaf, {', '.join(INTENT_COLUMNS)} FROM intents")]  # fmt: skip
        connection.execute("DELETE FROM tiles")
        connection.execute("DELETE FROM checkpoints")
        leaves.sort()
        for place, (_, table, seq, _) in enumerate(leaves):
            connection.execute(f"UPDATE {table} SET leaf = ? WHERE seq = ?", (place, seq))
        tiles.append(connection, [leaf_hash(data) for *_, data in leaves])


def cut_the_tail(connection: sqlite3.Connection) -> None:
    gone = f"SELECT json_extract(bytes, '$.intent_id') FROM events WHERE seq > {TAIL}"
    connection.execute(f"DELETE FROM intents WHERE intent_id IN ({gone})")
    for table in ("receipts", "events", "kept_values"):
        connection.execute(f"DELETE FROM {table} WHERE seq > {TAIL}")


def take_a_call_out(connection: sqlite3.Connection) -> None:
    connection.execute(
        "DELETE FROM intents WHERE intent_id = (SELECT json_extract(bytes, '$.intent_id') FROM events WHERE seq = 4)"
    )
    for table in ("receipts", "events"):
        connection.execute(f"DELETE FROM {table} WHERE seq = 4")


def change_an_event(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE events SET bytes = CAST(json_set(bytes, '$.reason', 'nothing') AS BLOB) WHERE seq = 3")


def change_an_intent(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE intents SET plan_hash = 'sha256:0' WHERE seq = 2")


def swap_two_intents(connection: sqlite3.Connection) -> None:
    connection.execute(
        "UPDATE intents SET leaf = (SELECT sum(leaf) FROM intents WHERE seq IN (2, 3)) - leaf WHERE seq IN (2, 3)"
    )
    connection.execute("UPDATE intents SET seq = -seq WHERE seq IN (2, 3)")
    connection.execute("UPDATE intents SET seq = 5 + seq WHERE seq < 0")


FORGERIES: dict[str, Change] = {
    "cut tail": cut_the_tail, "call taken out": take_a_call_out, "event": change_an_event, "intent": change_an_intent,
    "two intents swapped": swap_two_intents,
}  # fmt: skip


class Ledger(NamedTuple):
    """A stopped gateway's ledger, its receipt keys, and a checkpoint that an auditor keeps, as the gateway told it."""

    path: Path
    keys: Path
    kept: Path
    told: dict[str, object]


@pytest.fixture
def ledger(notary: Running, tmp_path: Path) -> Ledger:
    write_events(notary)
    told = notary.start().ask(ReadCheckpoint())
    notary.stop()
    kept = tmp_path / "kept.json"
    kept.write_bytes(msgspec.json.encode(told))
    return Ledger(notary.path, notary.folder / "receipt-keys.jwks.json", kept, msgspec.to_builtins(told))


def run(ledger: Ledger, *arguments: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main([str(ledger.path), "--keys", str(ledger.keys), *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("forgery", FORGERIES)
def test_only_a_kept_checkpoint_reveals_a_recomputed_ledger(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], forgery: str
) -> None:
    kept = ("--checkpoint", ledger.kept)
    code, said = run(ledger, *kept, capsys=capsys)
    assert (code, said.endswith(" It continues 1 checkpoint.\n")) == (Exit.OK, True)
    forged(ledger.path, FORGERIES[forgery])
    assert run(ledger, capsys=capsys)[0] == Exit.OK
    code, said = run(ledger, *kept, capsys=capsys)
    assert code == Exit.CHECK_FAILED
    assert "kept.json: the checkpoint of " in said
    assert ("was cut" if forgery in ("cut tail", "call taken out") else "was rewritten") in said


def test_checkpoints_are_read_as_people_keep_them(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = tmp_path / "note"
    note.write_text(str(ledger.told["checkpoint"]))
    own = ledger.path.with_name("checkpoints")
    with open(own, "ab") as file:
        file.write(b'{"time":"2026')
    code, said = run(ledger, "--checkpoint", note, "--checkpoint", own, "--checkpoint", ledger.kept, capsys=capsys)
    assert code == Exit.OK
    lines = len(own.read_text().splitlines()) - 1
    assert f"It continues {2 + lines} checkpoints." in said


def test_a_checkpoint_by_another_key_does_not_count_where_the_key_is_known(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = ledger.told["keys"]
    assert isinstance(keys, tuple)
    assert run(ledger, "--checkpoint", ledger.kept, "--checkpoint-key", keys[0], capsys=capsys)[0] == Exit.OK
    told = json.loads(ledger.kept.read_text())
    ledger.kept.write_text(
        json.dumps(told | {"checkpoint": told["checkpoint"].replace("unresolved=0", "unresolved=1")})
    )
    code, said = run(ledger, "--checkpoint", ledger.kept, "--checkpoint-key", keys[0], capsys=capsys)
    assert code == Exit.UNAVAILABLE
    assert "kept.json: the note has no signature that holds, by a known key." in said


def test_every_key_of_a_log_may_be_given_as_it_is_printed_and_a_missing_one_is_asked_for(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = ledger.told["keys"]
    assert isinstance(keys, tuple)
    name = keys[0].partition("+")[0]
    later = verifier_key(name, Ed25519PrivateKey.generate().public_key())
    assert run(ledger, "--checkpoint-key", f"{later}\n{keys[0]}\n", capsys=capsys)[0] == Exit.OK
    code, said = run(ledger, "--checkpoint-key", later, capsys=capsys)
    assert (code, "of a log whose key was rotated, give every key: --checkpoint-key" in said) == (
        Exit.CHECK_FAILED,
        True,
    )
    assert run(ledger, "--checkpoint-key", "", capsys=capsys)[0] == Exit.UNAVAILABLE


@pytest.mark.parametrize(("unsigned", "words"), [
    (0, "all of it"), (1, "all but 1 leaf"), (2, "all but 2 leaves"),
])  # fmt: skip
def test_the_signed_part_is_reported_only_with_the_logs_key(
    notary: Running, ledger: Ledger, capsys: pytest.CaptureFixture[str], unsigned: int, words: str
) -> None:
    keys = ledger.told["keys"]
    assert isinstance(keys, tuple)
    front = notary.start()
    for _ in range(unsigned):
        front.ask(make_note())
    notary.stop()
    execute(ledger.path, "DELETE FROM checkpoints WHERE size > ?", ledger.told["size"])
    code, said = run(ledger, "--checkpoint-key", keys[0], capsys=capsys)
    assert (code, said.count(f" The log's key signed 1 checkpoint, the newest over {words}.")) == (Exit.OK, 1)


def test_a_line_that_was_cut_within_a_character_spoils_no_other(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    line = json.dumps({"note": ledger.told["checkpoint"]}, ensure_ascii=False).encode()
    cut = line[: line.index("\u2014".encode()) + 2]
    ledger.kept.write_bytes(cut + b"\n" + line + b"\n" + cut)
    code, said = run(ledger, "--checkpoint", ledger.kept, capsys=capsys)
    assert (code, said.endswith(" It continues 1 checkpoint.\n")) == (Exit.OK, True)


@pytest.mark.parametrize(("content", "words"), [
    ("", "no signed note"), ("{}", "neither a checkpoint nor a note"), ('{"a":1}\nx}\n{}', "no JSON object"),
    ("x\n\n", "no signed note"), ('{"note":"x"}', "no signed note"), ("[]", "no signed note"),
])  # fmt: skip
def test_malformed_checkpoints_are_reported(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    ledger.kept.write_text(content)
    code, said = run(ledger, "--checkpoint", ledger.kept, capsys=capsys)
    assert code == Exit.UNAVAILABLE
    assert words in said
    code, said = run(ledger, "--checkpoint", ledger.path.with_name("none"), capsys=capsys)
    assert (code, "No such file" in said) == (Exit.UNAVAILABLE, True)
    code, said = run(ledger, "--checkpoint", ledger.kept, "--checkpoint-key", "a+b", capsys=capsys)
    assert (code, "not a verifier key" in said) == (Exit.UNAVAILABLE, True)


def test_the_command_takes_checkpoints_too(ledger: Ledger) -> None:
    done = subprocess.run(
        [*INTERPRETER, "supervisor.cli", "ledger", "verify", str(ledger.path), "--keys", str(ledger.keys),
         "--checkpoint", str(ledger.kept)], capture_output=True, text=True, timeout=300, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, "It continues 1 checkpoint." in done.stdout) == (Exit.OK, True)
