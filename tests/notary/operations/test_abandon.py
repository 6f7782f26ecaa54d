"""Abandon: nothing was dispatched; the call is given back, exactly once."""

import pytest

from ipc.messages import Abandon, Close, ReadBudget, ReadLedger
from tests.notary.running import Running
from tests.notary.samples import call_event, make_issue, make_open, make_result
from tests.support.asking import Told


def test_an_abandoned_call_is_given_back_and_has_an_event_and_no_receipt(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    opened = front.ask(asked)
    front.ask(Abandon(asked.intent_id, "error", "overloaded", "no worker in time"))
    assert front.ask(ReadBudget(session_id)).remaining == 3
    event = notary.last_event()
    assert {name: event.get(name) for name in ("decision", "error_code", "reason", "intent_id", "grant_id")} == {
        "decision": "error", "error_code": "overloaded", "reason": "no worker in time",
        "intent_id": asked.intent_id, "grant_id": opened.grant_id,
    }  # fmt: skip
    assert event["budgets_before"] == event["budgets_after"] == {"calls_remaining": 3}
    assert "receipt_id" not in event
    assert front.ask(ReadLedger()).unresolved == 0


def test_what_has_ended_is_not_abandoned_and_what_was_abandoned_is_not_closed(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    front.ask(asked)
    front.ask(Abandon(asked.intent_id, "error", "overloaded"))
    for again in (Abandon(asked.intent_id, "error", "overloaded"), Close(asked.intent_id, make_result())):
        with pytest.raises(Told) as told:
            front.ask(again)
        assert told.value.problem == "refused"
    assert front.ask(ReadBudget(session_id)).remaining == 3
    assert len(notary.events()) == 2


def test_a_notary_that_follows_gives_back_what_one_before_it_took(notary: Running) -> None:
    session_id = notary.front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    notary.front.ask(asked)
    notary.restart()
    front = notary.attach("front-1")  # it lived on, and counts on
    front.resend({9: Abandon(asked.intent_id, "error", "overloaded")})
    front.answer(9)
    assert front.ask(ReadBudget(session_id)).remaining == 3
