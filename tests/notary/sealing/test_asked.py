"""A serving notary cuts the ledger at the end of a segment: what it refuses, exports and still knows afterwards."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.messages.sealing import LedgerCut
from ipc.operations.exporting import EventPosition, FollowingEvents, NextEvents
from ipc.operations.status import ReadLedger
from notary.ledger import intents
from notary.ledger.cut import Cut
from notary.operations.cutting import _ERASED_SINCE, SealedRange
from tests.notary.running import Running, query
from tests.notary.samples import NOW, make_open, record_call
from tests.notary.sealing.sealed_ledger import AGE, asked, copied_age, keys_of, seal_age, verify, write_ages
from tests.support.asking import Told
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs


@pytest.fixture
def copied(notary: Running, tmp_path: Path) -> SealedRange:
    """A segment of the oldest calls of a ledger that serves."""
    return copied_age(notary, tmp_path / "segments").sealed


def old_events(notary: Running) -> int:
    with closing(sqlite3.connect(notary.path)) as ledger:
        statement = "SELECT count(*) FROM events WHERE time < ?"
        return int(ledger.execute(statement, ((NOW + AGE) * 1000,)).fetchone()[0])


def test_it_cuts_once_and_deletes_the_rows(notary: Running, copied: SealedRange, tmp_path: Path) -> None:
    assert asked(notary, copied).left > 0
    record_call(notary.front)
    wait_for(lambda: not old_events(notary), "the deletion of sealed rows")
    assert asked(notary, copied) == LedgerCut("cut-1")
    (told,) = query(notary.front, event_type="LedgerSealed")
    assert b'"by":"uid:7"' in told
    notary.stop()
    keys = keys_of(notary, tmp_path / "keys.json")
    ran = verify(notary.path, "--segments", tmp_path / "segments", "--keys", keys)
    assert ran.returncode == 0, ran.stdout


def with_end(**changes: object) -> Callable[[SealedRange], SealedRange]:
    return lambda sealed: msgspec.structs.replace(sealed, end=msgspec.structs.replace(sealed.end, **changes))


WRONG: dict[str, Callable[[SealedRange], SealedRange | str]] = {
    "no segment of a ledger": lambda _: "{}",
    "is not a part of this ledger": with_end(root="00" * 32),
    "does not end with an event": with_end(hash="sha256:" + "0" * 64),
    "does not end with its tree": with_end(intents=4),
    "does not begin where": lambda sealed: msgspec.structs.replace(sealed, beginning=Cut(leaves=3)),
    "younger than a day": with_end(until="2099-01-01T00:00:00.000Z"),
}


@pytest.mark.parametrize("reason", WRONG)
def test_it_refuses_a_segment_that_is_not_the_ledger_s_next_part(
    notary: Running, copied: SealedRange, reason: str
) -> None:  # fmt: skip
    told = asked(notary, WRONG[reason](copied))
    assert (told.is_refused, reason in (told.problem or "")) == (True, True), told
    assert old_events(notary) > 0
    assert query(notary.front, event_type="LedgerSealed") == []


def test_it_refuses_a_segment_with_values_that_were_erased_meanwhile(notary: Running, copied: SealedRange) -> None:
    with notary.stranger() as ledger:
        (newest,) = ledger.execute("SELECT max(seq) FROM events").fetchone()
        row = ("key", "/to", 1, "kept", newest + 1)
        ledger.execute("INSERT INTO kept_values (key, pointer, seq, kind, erased_by) VALUES (?, ?, ?, ?, ?)", row)
    told = asked(notary, copied)
    assert (told.is_refused, told.problem) == (True, "kept values were erased meanwhile: seal again")


def test_its_look_for_erased_values_walks_none_of_the_others_in_a_ledger_of_before_too(notary: Running) -> None:
    notary.execute("DROP INDEX kept_values_erased")
    notary.restart()
    with notary.stranger() as ledger:
        plan = [row[3] for row in ledger.execute(f"EXPLAIN QUERY PLAN {_ERASED_SINCE}", (7, 9))]
    assert plan == ["SEARCH kept_values USING COVERING INDEX kept_values_erased (erased_by>?)"]


@pytest.fixture
def cut(notary: Running, copied: SealedRange) -> EventPosition:
    """The place at which the ledger was cut, whose older rows are deleted."""
    asked(notary, copied)
    wait_for(lambda: not old_events(notary), "the deletion of sealed rows")
    return EventPosition(copied.end.events, copied.end.hash)


def skipped(notary: Running) -> int:
    count: int = notary.front.ask(ReadLedger()).export.events["skipped"]
    return count


def test_events_that_were_sealed_first_are_skipped_counted_and_told_once(notary: Running, cut: EventPosition) -> None:
    reader, every = notary.event_reader(), query(notary.front, limit=1000)
    with capture_logs() as lines:
        page: FollowingEvents = reader.ask(NextEvents())
        reader.ask(NextEvents(page.after))
    assert page.after == cut
    assert page.events == every[::-1]
    told = [line for line in lines if line["event"].startswith("events are not exported")]
    assert [(line["count"], line["position"]) for line in told] == [(cut.seq, cut.seq)]
    assert skipped(notary) == cut.seq


def test_an_export_that_had_come_to_the_cut_misses_nothing(notary: Running, cut: EventPosition) -> None:
    every = query(notary.front, limit=1000)
    page: FollowingEvents = notary.event_reader().ask(NextEvents(cut))
    assert (page.after, page.events, skipped(notary)) == (cut, every[::-1], 0)


OF_THAT_TIME = f"{int(NOW * 1000) >> 16:08x}-{int(NOW * 1000) & 0xFFFF:04x}-7"
"""The beginning of an id that was made at NOW."""


def of(tail: int, beginning: str = OF_THAT_TIME) -> str:
    return f"intent_{beginning}abc-8000-{tail:012x}"


@pytest.fixture
def sealed(notary: Running, tmp_path: Path) -> Running:
    """A ledger with three sealed intents: two of that time, and one whose id says a much later one."""
    write_ages(notary, more=[make_open(intent_id=one) for one in (of(5), of(7), of(1, "fffffff0-0000-7"))])
    seal_age(notary, tmp_path / "segments", 1)
    notary.start()
    assert notary.stored("SELECT count(*) FROM intents WHERE intent_id = ?", of(5)) == [0]
    return notary


@pytest.mark.parametrize("intent_id", [of(5), of(7), of(1, "fffffff0-0000-7")])
def test_a_sealed_id_opens_no_call(sealed: Running, intent_id: str) -> None:
    with pytest.raises(Told) as told:
        sealed.front.ask(make_open(intent_id=intent_id))
    assert told.value.problem == "refused"


def test_an_id_that_said_a_later_time_makes_no_other_id_known(sealed: Running) -> None:
    record_call(sealed.front)
    with sealed.stranger() as ledger:
        given = [of(6), of(9), of(1, "fffffff0-0000-7"), of(2, "fffffff0-0000-7")]
        known = [one for one in given if intents.is_known(ledger, one)]
        assert known == [of(6), of(1, "fffffff0-0000-7")]
        assert intents.known_among(ledger, given) == set(known)


def test_a_sealed_ledger_keeps_few_ids(sealed: Running) -> None:
    covering, alone = (sealed.stored("SELECT intent_id FROM sealed_intents WHERE covers = ?", one) for one in (1, 0))
    assert covering == [of(7)]
    assert of(1, "fffffff0-0000-7") in alone
