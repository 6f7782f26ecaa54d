"""The summary of a held call, which stands beside its request and goes with it."""

import msgspec

from ipc.approvals import summary_of
from ipc.operations.holds import ListedHolds, ListHolds
from tests.notary.running import Running
from tests.notary.samples import make_approval, make_claim, make_denial, make_hold


def listed_summary(kept: Running) -> str | None:
    page: ListedHolds = kept.front.ask(ListHolds(None, 9))
    (one,) = page.approvals
    return summary_of(one.body).summary


def test_a_list_has_the_summary_of_a_call_until_it_is_decided(kept: Running) -> None:
    approval = make_approval()
    approval = msgspec.structs.replace(approval, body=approval.body[:-1] + ',"summary":"12345.5 EUR"}')
    kept.front.ask(make_hold(approval))
    assert listed_summary(kept) == "12345.5 EUR"
    kept.front.ask(make_claim(approval))
    assert listed_summary(kept) == "12345.5 EUR"
    kept.front.ask(make_denial(approval))
    assert listed_summary(kept) is None
