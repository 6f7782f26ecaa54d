"""The auditor's command: its function, and the process it is where that matters."""

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, redirect_stderr, redirect_stdout
from copy import copy
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from ipc.process.clock import iso
from ipc.settings import LedgerSettings
from notary.programs.offline import main
from notary.reading.audit import CannotCheck, check, open_read_only
from notary.signing.keys import rotate
from notary.signing.receipt_keys import ReceiptKeys
from notary.store import holds
from tests.notary.running import ROOT, Running, execute
from tests.notary.samples import NOW, by_alice, make_approval, make_note, make_open, outcome_text, record_call
from tests.support.dying_rotation import places_in
from tests.support.notary_thread import LIMITS

CALLS = 9


class Done(NamedTuple):
    """The result of a run of the command."""

    returncode: int
    stdout: str
    stderr: str


class Case:
    """A ledger of CALLS calls and one event, a receipt of another key in the middle, and the key file."""

    def __init__(self, folder: Path) -> None:
        notary = Running(folder)
        place = places_in(folder).receipt
        for number in range(CALLS):
            notary.clock.time = NOW + number
            if number in (4, 5):
                # A rotation while no notary runs writes no event.
                notary.stop()
                self.kid = rotate(place)[0].kid
                notary.start()
            approval = make_approval(
                approval_id=f"apr_{number}", state="claimed", holder=f"front-{notary.lives}",
                outcome=outcome_text(claimed_by="alice"),
            )  # fmt: skip
            with notary.stranger() as store:
                holds.store(store, approval)  # without the events that a hold has
            record_call(notary.front, approver=by_alice(approval))
        notary.clock.time = NOW + CALLS
        notary.front.ask(make_note(event_type="AdminDrain"))
        notary.front.begin(make_open())
        notary.close()
        assert place.set is not None
        self.file, self.keys = notary.path, place.set
        with closing(sqlite3.connect(self.file)) as connection:
            rows = connection.execute("SELECT event_id FROM events ORDER BY seq").fetchall()
            self.ids = ["", *(row[0] for row in rows)]

    def execute(self, statement: str, *values: object) -> None:
        execute(self.file, statement, *values)

    def run(self, file: Path | None = None) -> Done:
        """The command in this process."""
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = main([str(file or self.file), "--keys", str(self.keys)])
        return Done(code, out.getvalue(), err.getvalue())

    def process(self) -> Done:
        """The command as a process of its own."""
        command = [sys.executable, "-m", "notary.programs.offline", str(self.file), "--keys", str(self.keys)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    def broken(self, words: str, seq: int | None) -> str:
        """It must be broken there and say so in its last sentence; returns all it printed."""
        done = self.run()
        assert done.returncode == 8, done.stdout + done.stderr
        last = done.stdout.splitlines()[-1]
        assert words in last
        assert f"is broken at event {self.ids[seq]}, number {seq}:" in last if seq else "is broken: " in last
        assert done.stderr == ""
        return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The state that each test gets a copy of."""
    return Case(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def case(whole: Case, tmp_path: Path) -> Case:
    copied = copy(whole)
    copied.file, copied.keys = (Path(shutil.copy(path, tmp_path)) for path in (whole.file, whole.keys))
    return copied


def test_a_whole_ledger_is_one_sentence_and_exit_0(case: Case) -> None:
    before = {path.name: path.read_bytes() for path in case.file.parent.iterdir()}
    done = case.process()
    assert case.run() == done
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"{case.file} is intact: 10 events in one chain, 9 receipts with a valid signature, 1 unresolved intent.\n"
    )
    assert {path.name: path.read_bytes() for path in case.file.parent.iterdir()} == before


def test_a_changed_event_is_shown_beside_its_neighbours(case: Case) -> None:
    case.execute("UPDATE events SET bytes = CAST(replace(bytes, 'allow', 'deny!') AS BLOB) WHERE seq = 5")
    lines = case.broken("column decision does not say what the event says", 5).splitlines()
    assert len(lines) == 4
    assert [line[0] for line in lines[:3]] == [" ", ">", " "]
    for line, seq in zip(lines, (4, 5, 6), strict=False):
        told = f" {seq}  {iso(NOW + seq - 1)}  ActionCall  text_digest  {'deny!' if seq == 5 else 'allow'}"
        assert line.endswith(f"{told}  {case.ids[seq]}")


@pytest.mark.parametrize(("value", "words"), [
    ("x'ff'", "are not those of a receipt"),
    ("CAST(replace(bytes, 'executed', 'averted') AS BLOB)", "not have the content that was signed"),
    ("CAST(json_remove(bytes, '$.receipt_signature') AS BLOB)", "has no signature"),
    ("CAST(json_set(bytes, '$.signing_key_id', 'x') AS BLOB)", "does not list"),
])  # fmt: skip
def test_a_receipt_that_does_not_fit_is_noticed_at_its_event(case: Case, value: str, words: str) -> None:
    case.execute(f"UPDATE receipts SET bytes = {value} WHERE seq = 3")
    case.broken(words, 3)


def test_an_intent_whose_columns_have_other_types_is_noticed_by_its_id(case: Case) -> None:
    for statement in (
        "CREATE TABLE made AS SELECT * FROM intents", "DROP TABLE intents", "ALTER TABLE made RENAME TO intents",
        "UPDATE intents SET context = 'text' WHERE seq = 5",
    ):  # fmt: skip
        case.execute(statement)
    with closing(sqlite3.connect(case.file)) as connection:
        (intent_id,) = connection.execute("SELECT intent_id FROM intents WHERE seq = 5").fetchone()
    done = case.run()
    assert done.returncode == 8
    assert done.stdout.endswith(f"is broken at {intent_id}: its columns are not those of an intent.\n")


def test_a_file_that_can_not_be_read_to_its_end_is_no_broken_ledger(case: Case) -> None:
    keys = ReceiptKeys(json.loads(case.keys.read_bytes()))
    with closing(open_read_only(case.file)) as connection:
        connection.set_progress_handler(lambda: 1, 500)
        with pytest.raises(CannotCheck, match="could not be read to its end: interrupted"):
            check(connection, keys, lambda done, total: None)


def test_a_copy_beside_its_wal_and_one_without_are_both_fine(case: Case, tmp_path: Path) -> None:
    case.execute("DELETE FROM checkpoints")  # the folder that the ledger goes on in has none
    limits = replace(LIMITS, idle_seconds=3600.0)  # so that the WAL is not copied into the file meanwhile
    notary = Running(tmp_path / "live", limits=limits, ledger=LedgerSettings(path=str(case.file)))
    front = notary.attach("front-of-now")  # what was answered to the first one of that folder is remembered
    for _ in range(5):
        front.ask(make_note())
    copies = [tmp_path / "both", tmp_path / "alone"]
    for folder in copies:
        os.mkdir(folder)
        shutil.copy(case.file, folder / "ledger.sqlite3")
    shutil.copy(f"{case.file}-wal", copies[0] / "ledger.sqlite3-wal")
    running = case.run()
    assert running.returncode == 0, running.stdout + running.stderr
    assert "15 events" in running.stdout
    notary.close()
    both, alone = case.run(tmp_path / "both" / "ledger.sqlite3"), case.run(tmp_path / "alone" / "ledger.sqlite3")
    assert (both.returncode, alone.returncode) == (0, 0), (both, alone)
    assert "15 events" in both.stdout
    assert "10 events" in alone.stdout
    assert os.listdir(tmp_path / "alone") == ["ledger.sqlite3"]


def test_foreign_text_is_escaped_for_the_terminal(case: Case) -> None:
    case.execute(
        "UPDATE events SET event_id = ?, bytes = ? WHERE seq = 5", "evt\x1b[2J\u202e", b'{"event_id":"\\u001b[2J"}'
    )
    done = case.run()
    assert done.returncode == 8
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\x1b[2J" in done.stdout


def test_bytes_that_are_no_text_are_shown_as_numbers(case: Case) -> None:
    case.execute("UPDATE events SET bytes = ? WHERE seq = 5", b"\xff\x00 {")
    done = case.run()
    assert done.returncode == 8
    assert "\\xff\\x00 {" in done.stdout


@pytest.mark.parametrize("content", [b"", b"hello" * 2000, b"SQLite format 3\x00" + b"\x00" * 4080])
def test_a_file_that_is_no_ledger_is_one_sentence_with_its_own_exit_code(case: Case, content: bytes) -> None:
    case.file.write_bytes(content)
    done = case.run() if content else case.process()
    assert done.returncode == 69
    assert done.stdout == ""
    assert done.stderr.startswith("Nothing can be said: ")
    assert done.stderr.count("\n") == 1


def test_a_missing_file_and_a_bad_key_file_are_reported(case: Case, tmp_path: Path) -> None:
    assert case.run(tmp_path / "none").stderr == f"Nothing can be said: {tmp_path / 'none'} does not exist.\n"
    for content in (b"", b"[]", b'{"keys":1}', b"[" * 100_000):
        case.keys.write_bytes(content)
        done = case.run()
        assert (done.returncode, "is not a JWKS" in done.stderr) == (69, True)
    case.keys.unlink()
    assert "cannot be read: No such file" in case.run().stderr


def test_a_ledger_without_keys_can_not_be_checked(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(case.file)]) == 69
    assert capsys.readouterr().err.endswith(": a ledger carries no keys: give --keys.\n")


@pytest.mark.parametrize(("change", "code"), [("", 0), ("UPDATE events SET time = time + 1 WHERE seq = 3", 8)])
def test_the_exit_code_tells_the_finding_to_a_reader_that_is_gone(case: Case, change: str, code: int) -> None:
    with closing(sqlite3.connect(case.file)) as connection, connection:
        connection.execute(change)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "notary.programs.offline", str(case.file), "--keys", str(case.keys)]
    done = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(case: Case) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "notary.programs.offline", str(case.file), "--keys", str(case.keys)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=follower) as child:
        os.close(follower)
        assert child.stdout is not None
        said = child.stdout.read()
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:
            pass  # a terminal whose last writer has left
    os.close(leader)
    assert b"of 10 events checked" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert said.count(b"\n") == 1
