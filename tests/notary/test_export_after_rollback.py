"""The export of events from a ledger that was put back from an earlier copy."""

import json
import sqlite3
from contextlib import closing

from ipc.operations.exporting import FollowingEvents, NextEvents
from ipc.operations.status import ReadLedger
from notary.accept_rollback import accept
from tests.notary.ledger.test_following import NOT_CONTINUED, end_of, note
from tests.notary.running import Running, query
from tests.notary.sealing.sealed_ledger import events_in
from tests.notary.test_checkpoints import grow, older
from tests.support.asking import EventReader
from tests.support.logs import capture_logs


def exported(reader: EventReader) -> FollowingEvents:
    """Settle every event of the ledger; the first page."""
    first: FollowingEvents = reader.ask(NextEvents())
    page = first
    while page.events:
        page = reader.ask(NextEvents(end_of(page)))
    return first


def test_every_event_since_is_exported_and_the_first_of_them_says_that_it_was_put_back(notary: Running) -> None:
    grow(notary)
    query(notary.front)
    exported(notary.event_reader())
    grow(notary)
    put_back = older(notary)
    grow(notary)
    query(notary.front)
    exported(notary.event_reader())
    notary.stop()
    put_back()
    accept(notary.settings, "the disk died")
    notary.start()
    note(notary, "since")
    with capture_logs() as lines:
        page = exported(notary.event_reader())
    with closing(sqlite3.connect(notary.path)) as ledger:
        every = events_in(ledger)
    again = [json.loads(event) for event in page.events]
    assert again == every[page.after.seq :], "up to the end, without a gap"
    assert [event["event_type"] for event in every].index("RollbackAccepted") >= page.after.seq > 0
    assert [line["event"] for line in lines].count(NOT_CONTINUED) == 1
    assert notary.front.ask(ReadLedger()).export.changes == 1
