"""A walk along more intents than one step of it reads."""

from ipc.operations.intents import ListUnresolved
from notary.reading.tree_walk import CHUNK
from tests.notary.running import Running, walk_of
from tests.notary.samples import make_open, record_call


def test_intents_are_walked_on_where_the_step_before_ended(notary: Running) -> None:
    for _ in range(CHUNK + 2):
        record_call(notary.front)
    assert notary.front.ask(ListUnresolved(9)) == []  # which has all of them brought to their table
    report = walk_of(notary)
    assert (report.intact, report.size) == (True, 2 * (CHUNK + 2)), report.reason


def test_intents_that_no_event_ends_are_walked_to_the_last_one(notary: Running) -> None:
    count = CHUNK + 1
    for _ in range(count):
        notary.front.begin(make_open())
    notary.front.ask(ListUnresolved(9))
    walk = walk_of(notary)
    assert (walk.intact, walk.events_checked, walk.size) == (True, 0, count), walk.reason
