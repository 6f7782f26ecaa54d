"""The journal: entries are read as they were written, round and round; what is damaged is found."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ipc.operations.calls import Closed, UseProof, Withdraw
from ipc.operations.status import ReadLedger
from ipc.process.clock import ClockWrong
from notary.backends.sqlite import connect
from notary.database import DatabaseGone
from notary.ledger import page_ring, schema
from notary.ledger.page_ring import SLOTS, RingEntry, pieces_of
from notary.ledger.settling import Unsettled, head_with, settle, unsettled
from notary.opening import open_state
from notary.operations.table import PERFORMERS
from notary.programs.offline import main
from notary.reading.whole import WholeWalk
from notary.units.runner import TransactionRunner
from notary.units.tasks import Task
from tests.notary.conftest import StartNotary
from tests.notary.lost import lost_call
from tests.notary.running import UNDISTURBED, Running, execute, settings_in, walk
from tests.notary.samples import NOW, fresh_proof, make_note, make_open, make_result, record_call
from tests.support.asking import Asker
from tests.support.ledger_file import file_of, made_ledger
from tests.support.notary_thread import LIMITS

FRAME = 24 + 4096
NEVER_QUIET = replace(UNDISTURBED, quiet_seconds=3600.0)
"""The journal settles only when it has to, never by time."""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(made_ledger(tmp_path / "ledger.sqlite3"), writes=True)) as connection:
        yield connection


def entry_of(number: int, size: int = 1) -> RingEntry:
    return RingEntry(proofs=[(number, "p" * size, 1.5)], answers=[("front-1", number, b"answer", None, None, None)])


def test_a_journal_of_which_all_is_settled_goes_on_after_its_newest_unit_and_has_its_answers(
    connection: sqlite3.Connection,
) -> None:
    assert page_ring.read(connection) == ([], 0, 0, 0, None)
    entries = [entry_of(number) for number in (1, 2)]
    for slot, entry in enumerate(entries):
        page_ring.write(connection, pieces_of(entry, slot + 1), slot)
    assert page_ring.read(connection)[1:] == (0, 2, 2, entries[1].answers)
    settle(connection, entries, 2)
    assert page_ring.read(connection) == ([], 2, 2, 2, entries[1].answers)


@pytest.mark.parametrize("rows", ["proofs", "intents", "resolved", "events"])
def test_a_unit_with_rows_of_any_table_is_to_be_settled_and_one_with_answers_alone_is_not(rows: str) -> None:
    some: dict[str, Any] = {rows: ["a row"]}
    assert RingEntry(answers=entry_of(1).answers).is_settled is True
    assert RingEntry(**some).is_settled is False


def kept(entry: RingEntry) -> list[Any]:
    return [entry.proofs, entry.answers]


@given(sizes=st.lists(st.one_of(st.integers(1, 200), st.integers(1, 60_000)), max_size=60), restarts=st.integers(1, 9))
def test_unsettled_entries_are_read_as_written_after_any_number_of_rounds(sizes: list[int], restarts: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.prepare(connection)
        memory, written = Unsettled(page_ring.read(connection)), list[RingEntry]()
        for number, size in enumerate(sizes, 1):
            entry = entry_of(number, size)
            pieces = pieces_of(entry, number)
            if memory.used + len(pieces) > SLOTS:
                settle(connection, memory.entries, memory.number)
                memory.clear()
                written.clear()
            page_ring.write(connection, pieces, memory.slot)
            memory.add(entry, len(pieces))
            written.append(entry)
            reread = page_ring.read(connection)
            assert [*map(kept, reread.entries)] == [*map(kept, written)]
            assert (reread.last, reread.slot, reread.answers) == (number, memory.slot, entry.answers)
            if number % restarts == 0:
                memory = Unsettled(reread)


def test_an_entry_fills_one_page_and_writing_it_changes_no_other(
    connection: sqlite3.Connection, tmp_path: Path
) -> None:
    wal = tmp_path / "ledger.sqlite3-wal"
    for slot in range(30):
        page_ring.write(connection, pieces_of(entry_of(0), 0), slot)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(1, 30):
        (piece,) = pieces_of(entry_of(number, 3000), number)
        page_ring.write(connection, [piece], number)
    assert wal.stat().st_size == 32 + 29 * FRAME


def spoil(connection: sqlite3.Connection, statement: str) -> None:
    for number in (1, 2, 3):
        pieces = pieces_of(entry_of(number, 5000), number)
        page_ring.write(connection, pieces, 2 * number)
    connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM journal WHERE slot = 4",
        "UPDATE journal SET bytes = zeroblob(4056) WHERE slot = 5",
        "INSERT INTO journal VALUES (60, zeroblob(3))",
        "UPDATE journal SET bytes = CAST(substr(bytes, 1, 20) || x'c1' || substr(bytes, 22) AS BLOB) WHERE slot = 4",
        "UPDATE meta SET value = 'x' WHERE key = 'settled'",
        "DELETE FROM meta WHERE key = 'settled'",
    ],
)
def test_a_journal_that_is_not_whole_is_found(connection: sqlite3.Connection, statement: str) -> None:
    spoil(connection, statement)
    for look in (page_ring.read, unsettled):
        with pytest.raises(DatabaseGone, match="journal makes no sense"):
            look(connection)


def unsettled_calls(notary: Running) -> Asker:
    """Two calls and one that is open, all in the journal and in no table: a kill follows."""
    front = notary.front
    front.begin(make_open())
    for number in front.send(make_open(), make_note(), make_open()):
        front.answer(number)
    return front


def copied(notary: Running, folder: Path) -> Path:
    """The file as a kill would leave it now."""
    folder.mkdir()
    path = folder / "ledger.sqlite3"
    with closing(sqlite3.connect(notary.path)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return path


def test_readers_see_what_is_in_the_journal_alone(
    start_notary: StartNotary, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notary = start_notary(limits=NEVER_QUIET)
    front = unsettled_calls(notary)
    report = walk(front)
    assert (report.intact, report.total_events) == (True, 3)
    assert front.ask(ReadLedger()).unresolved == 1
    path = copied(notary, tmp_path / "copy")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (0,)
        assert (head := head_with(connection, unsettled(connection))) is not None
        assert head.seq == 3
    keys = str(notary.folder / "receipt-keys.jwks.json")
    main([str(path), "--keys", keys])
    said = "is intact: 3 events in one chain, 2 receipts with a valid signature, 1 unresolved intent."
    assert said in capsys.readouterr().out
    execute(path, "UPDATE journal SET bytes = CAST(replace(bytes, 'allow', 'deny!') AS BLOB)")
    main([str(path), "--keys", keys])
    assert "is broken at event evt_" in capsys.readouterr().out
    execute(path, "UPDATE journal SET bytes = zeroblob(9) WHERE slot = 0")
    main([str(path), "--keys", keys])
    assert "journal makes no sense" in capsys.readouterr().out


def test_the_clock_is_never_before_evidence_in_the_journal(start_notary: StartNotary, tmp_path: Path) -> None:
    notary = start_notary(limits=NEVER_QUIET)
    notary.clock.time += 1e9
    notary.front.ask(make_note())
    copied(notary, tmp_path / "copy")
    state, _ = open_state(settings_in(tmp_path / "copy"), limits=LIMITS)
    state.database.close()
    with pytest.raises(ClockWrong, match="earlier than the newest evidence"):
        state.clock.now()


def test_a_proof_an_intent_and_an_end_are_known_whether_they_are_settled_or_not(start_notary: StartNotary) -> None:
    notary = start_notary(limits=NEVER_QUIET)
    front, proof = notary.front, fresh_proof()
    opened = make_open(proof=proof)
    begun = front.begin(opened)
    for _ in range(2):
        numbers = front.send(UseProof(proof), UseProof(proof), make_open(intent_id=opened.intent_id))
        assert [front.heard(number).problem for number in numbers] == [None, None, "refused"]
        assert not front.ask(UseProof(proof)).is_fresh
    assert isinstance(front.finish(opened, begun, make_result()), Closed)
    withdraw = Withdraw(opened.intent_id, "error", "overloaded")
    assert [front.heard(one).problem for one in front.send(withdraw, withdraw)] == ["refused", "refused"]
    for _ in range(20):
        for number in front.send(*[make_note() for _ in range(200)]):
            front.answer(number)
    assert not front.ask(UseProof(proof)).is_fresh
    assert front.heard(front.send(make_open(intent_id=opened.intent_id))[0]).problem == "refused"


def test_the_oldest_abandoned_call_is_found_also_in_the_journal(start_notary: StartNotary) -> None:
    notary = start_notary(limits=NEVER_QUIET)
    lost_call(notary)
    notary.clock.time += 60
    lost_call(notary)
    assert notary.front.ask(ReadLedger()).oldest_unresolved == NOW


def test_a_unit_that_is_too_large_for_the_journal_goes_to_its_tables_at_once(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, unsettled_slots=64))
    front = notary.front
    large = make_note(reason="x" * 50_000)
    for number in front.send(*[large] * 30):
        front.answer(number)
    record_call(front)
    assert (walk(front).intact, len(notary.events())) == (True, 31)


def tasks_of(*operations: Any) -> list[Task]:
    return [Task("front-1", number, operation) for number, operation in enumerate(operations)]


def test_a_journal_that_is_full_makes_room_for_the_next_unit_by_itself(tmp_path: Path) -> None:
    state, _ = open_state(settings_in(tmp_path), limits=LIMITS)
    units = TransactionRunner(state, PERFORMERS)
    for _ in range(2 * SLOTS + 1):
        (outcome,) = units.perform(tasks_of(make_note()))
        assert outcome.problem is None
    state.database.close()
    with closing(connect(file_of(state.database), writes=False)) as connection:
        assert 0 < len(unsettled(connection)) <= SLOTS
        progress = WholeWalk()
        while progress.step(connection):
            pass
    report = progress.report()
    assert (report.intact, report.total_events) == (True, 2 * SLOTS + 1)
