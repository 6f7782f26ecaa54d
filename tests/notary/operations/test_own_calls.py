"""Pages of an agent's own calls: each call is on one of them, whatever its state, and the last page is reached."""

from typing import Any

import pytest

from ipc.operations.calls import Approver, Refuse
from ipc.operations.own_calls import ListOwnCalls
from tests.notary.lost import lost_call
from tests.notary.running import Running
from tests.notary.samples import call_event, make_approval, make_claim, make_hold, make_open, record_call

KEY = "k" * 43


def pages(notary: Running, limit: int) -> list[list[str]]:
    """Trace ids, the newest first; no more pages than there are calls."""
    found: list[list[str]] = []
    after: str | None = None
    for _ in range(20):
        page = notary.front.ask(ListOwnCalls("uid:1000", KEY, limit, after))
        found.append([call.trace_id for call in page.calls])
        after = page.next
        if after is None:
            return found
    raise AssertionError(f"pages without an end: {found[:6]}")


def own(trace_id: str) -> dict[str, Any]:
    return {"key_thumbprint": KEY, "trace_id": trace_id}


@pytest.mark.parametrize("limit", [1, 2, 3, 20])
def test_calls_of_the_same_millisecond_are_listed_once_each_with_and_without_an_end(
    notary: Running, limit: int
) -> None:
    """Calls that are opened together have one time. The clock of this test stands still."""
    held = make_approval()
    for number in (1, 4, 7):
        lost_call(notary, event=own(f"trc_{number}"))
    for number in (2, 5):
        record_call(notary.front, **own(f"trc_{number}"))
    notary.front.ask(Refuse(call_event(**own("trc_3"), decision="deny", error_code="policy_denied")))
    notary.front.ask(make_hold(held, event=call_event(**own("trc_6"), request_hash=held.request_hash)))
    found = pages(notary, limit)
    assert [trace_id for page in found for trace_id in page] == [f"trc_{number}" for number in (7, 6, 5, 4, 3, 2, 1)]
    assert all(len(page) <= limit for page in found)


def test_a_held_call_that_runs_by_now_ends_a_page_where_it_was_held(notary: Running) -> None:
    front, operator = notary.front, Approver("apr_1", "alice", "jkt", "jti")
    record_call(front, **own("trc_1"))
    notary.clock.time += 1
    held = make_approval(approval_id="apr_1")
    front.ask(make_hold(held, event=call_event(**own("trc_2"), request_hash=held.request_hash)))
    front.ask(make_claim(held))
    notary.clock.time += 1
    record_call(front, **own("trc_3"))
    front.begin(make_open(approver=operator, proof=None, event=call_event(trace_id="trc_2")))
    assert pages(notary, 1) == [["trc_3"], ["trc_2"], ["trc_1"]]
