"""Summaries of calls: in notifications made of kept values when they are sent, never stored with the delivery; in a
list of held calls beside the request, with which they go."""

import json

from ipc.approvals import summary_of
from ipc.evidence.kept_values import KeptValue, KeptValues
from ipc.operations.holds import ListedHolds, ListHolds
from tests.notary.running import Running
from tests.notary.samples import changed, claim, make_approval, make_claim, make_denial, make_hold, make_open

KEPT = KeptValues((KeptValue("/amount", "12345.5"), KeptValue("/to", '"acct-7"')), "{amount} EUR to {to}")


def test_a_held_and_an_executed_call_are_told_by_their_summaries(kept: Running) -> None:
    kept.front.ask(make_hold(kept=KEPT))
    kept.front.ask(make_open(kept=KEPT))
    kept.front.ask(make_open())
    data = [json.loads(one.payload)["data"] for one in claim(kept.front)]
    assert [one.get("summary") for one in data] == ["12345.5 EUR to acct-7", "12345.5 EUR to acct-7", None]
    assert not [one for one in data if "summary_template" in one]


def test_a_value_that_was_erased_before_the_delivery_is_not_sent(telling: Running) -> None:
    telling.front.ask(make_hold(kept=KEPT))
    assert not [row for row in telling.stored("SELECT payload FROM outbox") if "12345.5" in row]
    telling.stop()
    telling.execute("UPDATE kept_values SET value = NULL, salt = NULL, erased_by = 9 WHERE pointer = '/amount'")
    telling.start()
    (data,) = [json.loads(one.payload)["data"] for one in claim(telling.front)]
    assert data["summary"] == "erased"


def listed_summary(kept: Running) -> str | None:
    page: ListedHolds = kept.front.ask(ListHolds(None, 9))
    (one,) = page.approvals
    return summary_of(one.body).summary


def test_a_list_has_the_summary_of_a_call_until_it_is_decided(kept: Running) -> None:
    approval = make_approval()
    approval = changed(approval, body=approval.body[:-1] + ',"summary":"12345.5 EUR"}')
    kept.front.ask(make_hold(approval))
    assert listed_summary(kept) == "12345.5 EUR"
    kept.front.ask(make_claim(approval))
    assert listed_summary(kept) == "12345.5 EUR"
    kept.front.ask(make_denial(approval))
    assert listed_summary(kept) is None
