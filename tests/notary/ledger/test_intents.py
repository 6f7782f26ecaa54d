"""Intents as they are stored: whose call it is stands in every row."""

import msgspec
import pytest

from notary.ledger.intents import OpenIntent, row_of
from tests.notary.samples import call_event, make_terms

INTENT = OpenIntent("intent_1", "grant_1", "2026-01-01T00:00:00.000Z", call_event(), make_terms(), False, None)


def test_a_row_says_whose_call_it_is_and_of_what() -> None:
    event = INTENT.event
    assert row_of(INTENT, "jws")[:4] == ("intent_1", event.trace_id, event.action_id, event.principal)


@pytest.mark.parametrize("name", ["trace_id", "action_id", "principal"])
def test_the_event_of_a_call_that_does_not_say_whose_it_is_makes_no_intent(name: str) -> None:
    nobodys = msgspec.structs.replace(INTENT, event=call_event(**{name: None}))
    with pytest.raises(ValueError, match="without trace, action or principal"):
        row_of(nobodys, "jws")
