"""A ledger with rows in every table, an attacker who can write its folder, and the verdict of each check then."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.evidence import ReadCheckpoint
from ipc.process.exits import Exit
from ipc.process.private_files import PrivateFileError
from ipc.settings import Settings
from notary.checkpoints import RolledBack
from notary.database import DatabaseGone
from notary.ledger.activity_sums import SUM_KEYS
from notary.opening import open_state
from notary.programs.offline import main
from tests.notary.running import UNDISTURBED, HandClock, Running
from tests.notary.samples import (
    NOW_MS,
    by_alice,
    call_event,
    changed,
    claim,
    held_and_claimed,
    hooks,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_revoke,
    notify,
    record_call,
    settled,
)
from tests.support.notary_thread import LIMITS

NEVER_SETTLED = replace(UNDISTURBED, quiet_seconds=3600.0)
LATE = NOW_MS + 3600_000
EPOCH = 1
KEPT = KeptValues((KeptValue("/amount_cents", "2500"),))


class Found(NamedTuple):
    """Verdicts of the checks: exit codes of the command alone, with the log's key, with a kept checkpoint,
    and of a start; and the sentence of the first."""

    alone: int
    with_key: int
    with_kept: int
    start: int
    words: str


class Folder:
    """A state folder of a stopped gateway: its ledger, keys and checkpoints, and a checkpoint that was kept."""

    def __init__(self, path: Path, settings: Settings, verifier_key: str, early: Path) -> None:
        self.path = path
        self.early = early
        """A copy of how it was before."""
        self.ledger = path / "ledger.sqlite3"
        self.keys = path / "receipt-keys.jwks.json"
        self.given_keys = self.keys
        """The inputs of the check."""
        self.checkpoints = path / "checkpoints"
        self.kept = path / "kept.json"
        self.verifier_key = verifier_key
        self.settings = msgspec.structs.replace(
            settings, state_dir=str(path), receipt_keys_jwks_path=str(self.keys),
            **{f"{one}_signing_key_path": str(path / "keys" / f"{one}.pem") for one in ("lease", "grant", "receipt")},
        )  # fmt: skip

    def copy(self, to: Path) -> "Folder":
        """The same one elsewhere."""
        shutil.copytree(self.path, to)
        return Folder(to, self.settings, self.verifier_key, self.early)

    def change(self, change: Callable[[sqlite3.Connection], object]) -> None:
        """Change rows of the ledger."""
        with closing(sqlite3.connect(self.ledger)) as connection, connection:
            change(connection)

    def rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(f"file:{self.ledger}?mode=ro", uri=True)) as connection:
            return connection.execute(statement, values).fetchall()

    def verify(self, *more: object) -> tuple[int, str]:
        """`gateway ledger verify`: its exit code and its last line."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = main([str(self.ledger), "--keys", str(self.given_keys), *map(str, more)])
        return code, (out.getvalue() + err.getvalue()).splitlines()[-1]

    def start(self) -> tuple[int, str]:
        """The exit code and the message of a notary that starts on this folder; OK and no message if it serves."""
        try:
            state, _ = open_state(self.settings, HandClock(), limits=LIMITS)
        except RolledBack as error:
            return Exit.ROLLED_BACK, str(error)
        except DatabaseGone as error:
            return Exit.UNAVAILABLE, str(error)
        except PrivateFileError as error:
            return error.exit_code, str(error)
        state.database.close()
        return Exit.OK, ""

    def judged(self) -> Found:
        """All four. The start comes last: it may write."""
        alone, words = self.verify()
        with_key, _ = self.verify("--checkpoint-key", self.verifier_key)
        with_kept, _ = self.verify("--checkpoint", self.kept)
        return Found(alone, with_key, with_kept, self.start()[0], words)


def recorded(folder: Path) -> Folder:
    """Everything is settled, and the last checkpoint commits to all of it. The folder also holds `early`, an earlier
    copy."""
    notary = Running(folder, webhooks=hooks("chat", "pager"))
    for number in range(4):
        notary.clock.time += 1
        record_call(notary.front)
        notary.front.ask(make_note(reason=f"{number}"))
        notary.front.ask(ReadCheckpoint())
    notary.stop()
    shutil.copytree(folder, folder.with_name("early"))
    front = notary.start()
    front.ask(make_issue(max_calls=5, max_sessions=9))
    other = make_issue(max_calls=7, principal="uid:1001", max_sessions=9)
    front.ask(changed(other, event=changed(other.event, principal="uid:1001")))
    front.ask(make_open(event=call_event(principal="uid:1001"), calls_per_hour=9))
    approved = held_and_claimed(front, front.front_id)
    record_call(front, approver=by_alice(approved))
    front.ask(make_hold(calls_per_hour=9))
    front.ask(make_hold(calls_per_hour=9))
    front.ask(make_revoke())
    notify(front)
    for delivery in claim(front, now=LATE, until=LATE + 1, limit=2):
        front.ask(settled(delivery, error="gone", at=NOW_MS))
    for number in range(3):
        notary.clock.time += 1
        front.ask(make_open(epoch=EPOCH, kept=KEPT))
        front.ask(make_note(reason=f"{number}"))
    for _ in range(2):
        front.begin(make_open(epoch=EPOCH))
    told = front.ask(ReadCheckpoint())
    notary.close()
    with closing(sqlite3.connect(notary.path)) as connection, connection:
        rows = [(f"holder {number}", f"ses_{number}", EPOCH, notary.clock.time) for number in range(2)]
        connection.executemany("INSERT INTO last_sessions VALUES (?, ?, ?, ?)", rows)
        kept = [(7, "apr_7", "uid:1007", notary.clock.time, 2, "{}"), (8, "apr_8", "uid:1008", LATE, 3, "[ ]")]
        for texts, key, sums in (
            ("kept_approvals", "approval_id", "kept_bytes"), ("kept_outputs", "call_id", "kept_output_bytes"),
        ):  # fmt: skip
            columns = f"seq, {key}, principal, ended_at, bytes, record"
            connection.executemany(f"INSERT INTO {texts} ({columns}) VALUES (?, ?, ?, ?, ?, ?)", kept)
            connection.executemany(f"INSERT INTO {sums} VALUES (?, ?)", [("uid:1007", 2), ("uid:1008", 3)])
        count_by_hand(connection)
        reserve_by_hand(connection)
    (folder / "kept.json").write_bytes(msgspec.json.encode(told))
    return Folder(folder, notary.settings, told.keys[0], folder.with_name("early"))


def count_by_hand(connection: sqlite3.Connection) -> None:
    """Some counts and sums, however far the notary came with its own."""
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('counted', '0')")
    counts = [(1, 7, "decision", "allow", 3), (1, 8, "decision", "deny", 4), (24, 0, "action", "text_digest", 7)]
    sums = [(1, 7, "text_digest", "/amount", "1.5"), (24, 0, "text_digest", "/rate", "2")]
    for table, rows in (("activity", counts), ("activity_sums", sums)):
        connection.execute(f"DELETE FROM {table}")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", rows)
    SUM_KEYS.make(connection)


def reserve_by_hand(connection: sqlite3.Connection) -> None:
    """Amounts that count for caps, keys of calls, and standing approvals."""
    amounts = [("text_digest", "/amount", "all", 60, "", LATE, total, "0", LATE + 60) for total in ("1", "2")]
    rows: dict[str, list[tuple[str | int, ...]]] = {
        "cap_amounts": [("refund", *amounts[0][1:]), amounts[1]],
        "cap_reserved": [("apr_7", "[]", LATE), ("apr_8", "[ ]", LATE + 1)],
        "call_keys": [("k7", "uid:1007", "{}", LATE), ("k8", "uid:1008", "{ }", LATE + 1)],
        "call_key_counts": [("uid:1007", 1), ("uid:1008", 2)],
        "sealed_intents": [(1, "intent_7"), (0, "intent_8")],
        "call_ends": [("trc_7", "{}", LATE), ("trc_8", "{ }", LATE + 1)],
        "standing_approvals": [
            ("sta_7", "refund", "uid:1007", LATE, 1, "{}"),
            ("sta_8", "pay", "uid:1008", LATE + 1, 2, "{ }"),
        ],
    }
    for table, values in rows.items():
        marks = ", ".join("?" * len(values[0]))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)


def killed(folder: Path) -> Folder:
    """As a kill leaves it: some calls are in the journal alone, and no checkpoint commits to them."""
    notary = Running(folder / "running", limits=NEVER_SETTLED)
    try:
        record_call(notary.front)
        notary.front.ask(make_note())
        told = notary.front.ask(ReadCheckpoint())
        for _ in range(2):
            record_call(notary.front)
        notary.front.begin(make_open())
        notary.front.ask(make_note())
        shutil.copytree(notary.folder, folder / "left")
    finally:
        notary.close()
    (folder / "left" / "kept.json").write_bytes(msgspec.json.encode(told))
    return Folder(folder / "left", notary.settings, told.keys[0], folder / "running")
