"""Intents as they are stored: whose call it is stands in every row."""

import msgspec
import pytest

from ipc.operations.intents import ListUnresolved
from notary.ledger.intents import OpenIntent, known_among, row_of
from tests.notary.running import Running
from tests.notary.samples import call_event, make_open, make_terms

INTENT = OpenIntent("intent_1", "grant_1", "2026-01-01T00:00:00.000Z", call_event(), make_terms(), False, None)


def test_a_row_says_whose_call_it_is_and_of_what() -> None:
    event = INTENT.event
    assert row_of(INTENT, "jws")[:4] == ("intent_1", event.trace_id, event.action_id, event.principal)


@pytest.mark.parametrize("name", ["trace_id", "action_id", "principal"])
def test_the_event_of_a_call_that_does_not_say_whose_it_is_makes_no_intent(name: str) -> None:
    nobodys = msgspec.structs.replace(INTENT, event=call_event(**{name: None}))
    with pytest.raises(ValueError, match="without trace, action or principal"):
        row_of(nobodys, "jws")


def test_ids_in_the_ledger_are_distinguished_from_others(notary: Running) -> None:
    one, other = make_open(), make_open()
    for asked in (one, other):
        notary.front.begin(asked)
    assert len(notary.front.ask(ListUnresolved(9))) == 2  # which has them brought to their table
    with notary.stranger() as connection:
        assert known_among(connection, [one.intent_id, "intent_x"]) == {one.intent_id}
        assert known_among(connection, []) == set()
