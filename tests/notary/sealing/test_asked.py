"""A serving notary cuts the ledger at the end of a segment, which it judges by its own tree."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from ipc.messages.sealing import LedgerCut
from notary.ledger.cut import Cut
from notary.operations.cutting import _ERASED_SINCE, SealedRange
from notary.sealing.copying import copy
from tests.notary.running import Running, query
from tests.notary.samples import NOW, record_call
from tests.notary.sealing.sealed_ledger import AGE, asked, keys_of, verify, write_calls
from tests.support.gateway import wait_for


@pytest.fixture
def copied(notary: Running, tmp_path: Path) -> SealedRange:
    """A segment of the oldest calls of a ledger that serves."""
    for age in range(3):
        write_calls(notary, NOW + age * AGE)
    notary.clock.time = NOW + 10 * AGE
    return copy(notary.settings, NOW + AGE, tmp_path / "segments", "uid:7").sealed


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
    with notary.stranger() as ledger:
        ledger.execute("DROP INDEX kept_values_erased")
    notary.restart()
    with notary.stranger() as ledger:
        plan = [row[3] for row in ledger.execute(f"EXPLAIN QUERY PLAN {_ERASED_SINCE}", (7, 9))]
    assert plan == ["SEARCH kept_values USING COVERING INDEX kept_values_erased (erased_by>?)"]
