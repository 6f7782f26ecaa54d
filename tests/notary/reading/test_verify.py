"""The chain walker: every way in which a ledger can be changed behind its back, or its file be damaged."""

import json
import re
import sqlite3
from base64 import b64encode
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

import pytest

from contract.audit import ChainReport
from notary.ledger.head import Head
from notary.reading.verify import CHUNK, COLUMNS, Walk
from notary.reading.whole import WholeWalk, is_damage
from notary.tree.checkpoint import Checkpoint, parted
from notary.tree.merkle import EMPTY_ROOT
from tests.notary.conftest import StartNotary
from tests.notary.reading.tampered import EVENTS, MIDDLE, Tampered, write_events
from tests.notary.running import Running, query, walk
from tests.notary.samples import make_note


def test_an_untouched_ledger_is_intact(ledger_file: Tampered) -> None:
    report = ledger_file.verify()
    assert report == ChainReport(
        intact=True, events_checked=EVENTS, broken_at=None, total_events=EVENTS, verified_links=EVENTS, reason=None,
        head="sha256:" + sha256(ledger_file.bytes[EVENTS]).hexdigest(), size=EVENTS + EVENTS // 2, root=report.root,
        checkpoint=report.checkpoint,
    )  # fmt: skip
    assert report.checkpoint is not None
    made = Checkpoint.parse(parted(report.checkpoint)[0])
    assert (made.size, b64encode(made.root).decode()) == (report.size, report.root)


def test_an_empty_ledger_is_intact(notary: Running) -> None:
    assert walk(notary.front) == ChainReport(
        intact=True, events_checked=0, broken_at=None, total_events=0, verified_links=0, reason=None,
        root=b64encode(EMPTY_ROOT).decode(),
    )  # fmt: skip


@pytest.mark.parametrize("seq", [1, MIDDLE, EVENTS])
def test_no_byte_of_an_event_can_be_changed(ledger_file: Tampered, seq: int) -> None:
    original = ledger_file.bytes[seq]
    found_at = []
    for position in range(0, len(original), 7):
        ledger_file.put(seq, original[:position] + bytes([original[position] ^ 1]) + original[position + 1 :])
        report = ledger_file.verify()
        assert not report.intact, position
        # Bytes alone can't say which side of a link was changed, so it is the event itself or the one after it.
        assert report.broken_at in ledger_file.ids[seq : seq + 2], position
        found_at.append(report.broken_at)
    ledger_file.put(seq, original)
    assert ledger_file.verify().intact
    assert ledger_file.ids[seq] in found_at


@pytest.mark.parametrize("seq", [1, MIDDLE])
def test_a_changed_text_breaks_the_link_of_the_next_event(ledger_file: Tampered, seq: int) -> None:
    put(seq, burnt_more)(ledger_file)
    ledger_file.broken_at(seq + 1, "prev_hash does not match", ledger_file.ids[seq])


Change = Callable[[Tampered], object]


def sql(*statements: str) -> Change:
    def change(file: Tampered) -> None:
        for statement in statements:
            file.execute(statement)

    return change


def put(seq: int, change: Callable[[bytes], bytes]) -> Change:
    """Change the bytes of this event."""
    return lambda file: file.put(seq, change(file.bytes[seq]))


def with_link(link: bytes) -> Callable[[bytes], bytes]:
    """The same event with this link."""
    return lambda event: re.sub(rb'"prev_hash":(?:null|"[^"]*")', b'"prev_hash":' + link, event)


def only(stored: bytes) -> Callable[[bytes], bytes]:
    return lambda _: stored


def burnt_more(event: bytes) -> bytes:
    return event.replace(b'"fuel_consumed":1234', b'"fuel_consumed":1235')


def head(value: str) -> Change:
    return sql(f"UPDATE meta SET value = {value} WHERE key = 'head'")


NO_EVENTS = (b"", b"{}", b"null", b"[1]", b"\xff\xfe", b'{"event_id":1}', b"[" * 5000)
ANOTHER_LINK = with_link(b'"sha256:' + b"0" * 64 + b'"')
RENUMBERED = [f"UPDATE events SET seq = {seq} WHERE seq = {seq + 1}" for seq in range(MIDDLE, EVENTS)]
CHANGES: dict[str, tuple[Change, int | None, str]] = {
    # what was changed -> how, the event that is named, and for which reason
    "a text of the last event": (put(EVENTS, burnt_more), EVENTS, "its bytes are not those of leaf"),
    **{f"the link of event {seq}": (put(seq, ANOTHER_LINK), seq, "prev_hash does not match")
       for seq in (2, MIDDLE, EVENTS)},
    **{f"the link {link.decode()}": (put(MIDDLE, with_link(link)), MIDDLE, "") for link in (b"null", b'""', b"0")},
    "no first link": (
        put(1, lambda event: event.replace(b'"prev_hash":null,', b"")), 1, "the first event must have none"
    ),
    **{f"no {name}": (sql(f"UPDATE events SET {name} = NULL WHERE seq = {MIDDLE}"), MIDDLE, f"column {name}")
       for name in ("trace_id", "principal", "session_id", "action_id", "decision")},
    **{f"the bytes {stored[:20]!r}": (put(MIDDLE, only(stored)), MIDDLE, "not those of an event")
       for stored in NO_EVENTS},
    **{f"event {seq} deleted": (
        sql(f"DELETE FROM events WHERE seq = {seq}"), seq + 1, f"event number {seq} is missing before it"
    ) for seq in (1, MIDDLE)},
    "one deleted, and the others renumbered": (
        sql(f"DELETE FROM events WHERE seq = {MIDDLE}", *RENUMBERED), MIDDLE + 1, "prev_hash does not match"
    ),
    **{f"the last {cut} deleted": (
        sql(f"DELETE FROM events WHERE seq > {EVENTS - cut}"), EVENTS - cut,
        f"the last {cut} of {EVENTS} events are missing",
    ) for cut in (1, 5)},
    "all deleted": (sql("DELETE FROM events"), None, f"the last {EVENTS} of {EVENTS}"),
    "no head": (sql("DELETE FROM meta WHERE key = 'head'"), EVENTS, "does not say where its chain ends"),
    "a head of nonsense": (head("'nonsense'"), EVENTS, "does not say where its chain ends"),
    "an empty head": (head("'{}'"), EVENTS, "has 0 events"),
    "a head with another hash": (head("replace(value, 'sha256:', 'sha256:0')"), EVENTS, "do not have the hash"),
    "a head of fewer events": (head(f"json_set(value, '$.seq', {EVENTS - 1})"), EVENTS, "this is one more"),
    "a head of more events": (head(f"json_set(value, '$.seq', {EVENTS + 3})"), EVENTS, "the last 3 of 15"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_noticed_at_the_first_event_that_does_not_fit(ledger_file: Tampered, name: str) -> None:
    change, seq, reason = CHANGES[name]
    change(ledger_file)
    ledger_file.broken_at(seq, reason)


def test_events_that_were_swapped_are_noticed_at_the_first(ledger_file: Tampered) -> None:
    for change in ((-1, MIDDLE), (MIDDLE, MIDDLE + 1), (MIDDLE + 1, -1)):
        ledger_file.execute("UPDATE events SET seq = ? WHERE seq = ?", *change)
    report = ledger_file.verify()
    assert (report.broken_at, report.events_checked) == (ledger_file.ids[MIDDLE + 1], MIDDLE - 1)
    assert report.total_events == EVENTS


def test_a_well_linked_event_at_the_end_without_moving_the_head_is_noticed(ledger_file: Tampered) -> None:
    note = json.loads(ledger_file.bytes[EVENTS - 1])
    link = b"sha256:" + sha256(ledger_file.bytes[EVENTS]).hexdigest().encode()
    _insert_copy(ledger_file, EVENTS + 1, EVENTS - 1)
    ledger_file.put(EVENTS + 1, ledger_file.bytes[EVENTS - 1].replace(note["prev_hash"].encode(), link))
    report = ledger_file.verify()
    assert report.reason == "it has no place in the tree after that of the one before it"
    ledger_file.execute("UPDATE events SET leaf = (SELECT max(leaf) + 1 FROM events) WHERE seq = ?", EVENTS + 1)
    assert ledger_file.verify().reason == "it has no place in the tree after that of the one before it"


def _insert_copy(ledger_file: Tampered, seq: int, of: int) -> None:
    names = ", ".join((*COLUMNS, "bytes"))
    ledger_file.execute(f"INSERT INTO events (seq, {names}) SELECT ?, {names} FROM events WHERE seq = ?", seq, of)


def test_an_event_that_was_put_in_front_is_noticed(ledger_file: Tampered) -> None:
    _insert_copy(ledger_file, 0, 1)
    with closing(sqlite3.connect(ledger_file.path)) as connection:
        walk = Walk()
        rows = connection.execute(f"SELECT seq, {', '.join(COLUMNS)}, bytes FROM events ORDER BY seq").fetchall()
        broken = walk.step(rows)
    assert broken is not None
    assert broken.seq == 0
    assert not ledger_file.verify().intact


def test_the_first_of_several_breaks_is_reported(ledger_file: Tampered) -> None:
    ledger_file.execute("DELETE FROM events WHERE seq = 10")
    ledger_file.execute("UPDATE events SET decision = 'deny' WHERE seq = 4")
    ledger_file.put(2, b"{}")
    ledger_file.broken_at(2)
    ledger_file.put(2, ledger_file.bytes[2])
    ledger_file.broken_at(4)
    ledger_file.execute("UPDATE events SET decision = 'allow' WHERE seq = 4")
    ledger_file.broken_at(11)


def test_a_gap_shows_however_much_is_written_afterwards(notary: Running) -> None:
    write_events(notary)
    Tampered(notary.path).execute("DELETE FROM events WHERE seq = ?", EVENTS - 1)
    front = notary.start()
    for _ in range(3):
        front.ask(make_note())
    report = walk(front)
    assert not report.intact
    assert report.reason == f"event number {EVENTS - 1} is missing before it"


def test_a_walk_goes_a_bounded_way_at_a_time_and_takes_along_what_is_appended_meanwhile(
    start_notary: StartNotary,
) -> None:
    notary = start_notary()
    front = notary.front
    for number in front.send(*[make_note()] * 2 * CHUNK):
        front.answer(number)
    query(front, limit=1)  # what is asked for is brought to its table first
    walk = WholeWalk()
    with closing(sqlite3.connect(notary.path)) as connection:
        assert walk.step(connection)
        assert walk.chain.head.seq == CHUNK
        assert walk.step(connection)
        assert walk.chain.head.seq == 2 * CHUNK
        front.ask(make_note())
        assert not walk.step(connection)
    report = walk.report()
    assert (report.intact, report.events_checked) == (True, 2 * CHUNK + 1)


def test_a_walk_in_pieces_is_the_walk_in_one(ledger_file: Tampered) -> None:
    with closing(sqlite3.connect(ledger_file.path)) as connection:
        rows = connection.execute(f"SELECT seq, {', '.join(COLUMNS)}, bytes FROM events ORDER BY seq").fetchall()
    whole, pieces = Walk(), Walk()
    assert whole.step(rows) is None
    for row in rows:
        assert pieces.step([row]) is None
    assert pieces.head == whole.head != Head()
    assert pieces.end(whole.head) is None


def error(kind: type[sqlite3.DatabaseError], code: int | None = None) -> sqlite3.DatabaseError:
    """As SQLite raises it; without a code it is of Python's module itself."""
    made = kind("said")
    if code is not None:
        made.sqlite_errorcode = code
    return made


@pytest.mark.parametrize(
    ("found", "is_damaged"),
    [
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT), True),
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_CORRUPT_INDEX), True),
        (error(sqlite3.DatabaseError, sqlite3.SQLITE_NOTADB), True),
        (error(sqlite3.OperationalError, sqlite3.SQLITE_IOERR_READ), False),
        (error(sqlite3.OperationalError, sqlite3.SQLITE_BUSY), False),
        (error(sqlite3.OperationalError), True),
        (error(sqlite3.DatabaseError), False),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), True),
    ],
)
def test_a_malformed_page_or_text_is_damage_and_a_failed_read_is_not(
    found: sqlite3.DatabaseError | UnicodeDecodeError, is_damaged: bool
) -> None:
    assert is_damage(found) is is_damaged


def spoil(file: Tampered, table: str) -> None:
    """Zeros in the page that a table begins with."""
    with closing(sqlite3.connect(file.path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with file.path.open("r+b") as stored:
        stored.seek((page - 1) * size)
        stored.write(bytes(size))


def test_a_walk_that_meets_damage_ends_after_the_last_event_that_it_read_and_says_how_many_there_are(
    ledger_file: Tampered,
) -> None:
    spoil(ledger_file, "tiles")
    ledger_file.broken_at(EVENTS, "the file is damaged after it: ")
    assert ledger_file.verify().total_events == EVENTS
    walk = WholeWalk()
    with closing(sqlite3.connect(ledger_file.path)) as connection:
        assert not walk.step(connection)
    assert walk.broken is not None
    assert walk.broken.seq == EVENTS, "the place to look at"


def test_where_the_file_does_not_say_how_many_events_it_has_those_count_that_were_read(ledger_file: Tampered) -> None:
    spoil(ledger_file, "meta")
    report = ledger_file.verify()
    assert (report.intact, report.events_checked, report.total_events) == (False, EVENTS, EVENTS)


def test_a_walk_that_can_not_read_a_sound_file_says_nothing_of_it(ledger_file: Tampered) -> None:
    connection = sqlite3.connect(ledger_file.path)
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError):
        WholeWalk().step(connection)
