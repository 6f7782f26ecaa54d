"""An exporter of events whose ledger is sealed meanwhile."""

from pathlib import Path

import pytest

from ipc.operations.exporting import EventPosition, FollowingEvents, NextEvents
from ipc.operations.status import ReadLedger
from notary.sealing.copying import copy
from tests.notary.running import Running, query
from tests.notary.samples import NOW
from tests.notary.sealing.sealed_ledger import AGE, asked, write_calls
from tests.notary.sealing.test_asked import old_events
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs


@pytest.fixture
def cut(notary: Running, tmp_path: Path) -> EventPosition:
    """The place at which the ledger was cut, whose older rows are deleted."""
    for age in range(3):
        write_calls(notary, NOW + age * AGE)
    notary.clock.time = NOW + 10 * AGE
    sealed = copy(notary.settings, NOW + AGE, tmp_path / "segments", "uid:7").sealed
    asked(notary, sealed)
    wait_for(lambda: not old_events(notary), "the deletion of sealed rows")
    return EventPosition(sealed.end.events, sealed.end.hash)


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
