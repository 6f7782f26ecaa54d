"""Quotas of principals: counted over all of their leases, in the unit of what they count, and given back with it."""

from typing import Any

from ipc.operations.calls import Closed, Open, Refusal, Withdraw
from ipc.operations.holds import Hold, HoldInForce
from ipc.operations.leases import ReadBudget, SignedLease, TooManySessions
from notary.store import quotas
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    by_alice,
    call_event,
    changed,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_issue,
    make_open,
)
from tests.support.asking import Asker


def asked(limit: int = 2, principal: str = "uid:1000", session_id: str = "ses_1", **given: Any) -> Open:
    return make_open(
        event=call_event(principal=principal, session_id=session_id), calls_per_hour=limit, **given
    )  # fmt: skip


def held(limit: int = 2, **given: Any) -> Hold:
    return make_hold(calls_per_hour=limit, **given)


def counted(notary: Running, principal: str = "uid:1000") -> int:
    with notary.stranger() as connection:
        return quotas.calls_of(connection, principal, notary.clock.time)[0]


def test_an_hour_is_counted_over_all_sessions_of_a_principal_and_of_no_other(notary: Running) -> None:
    front = notary.front
    ends = [front.ask(asked(session_id=session)) for session in ("ses_1", "ses_2", "ses_3")]
    assert [type(end) for end in ends] == [Closed, Closed, Refusal]
    assert (ends[2].code, ends[2].quota, ends[2].retry_after) == (
        "budget_exhausted",
        "max_calls_per_hour",
        3660 - NOW % 60,
    )
    event = notary.last_event()
    assert (event["decision"], event["error_code"], event["session_id"]) == ("deny", "budget_exhausted", "ses_3")
    assert event["reason"] == "max_calls_per_hour of uid:1000, 2, is used up"
    assert len(notary.stored("SELECT 1 FROM intents")) == 2
    assert isinstance(front.ask(asked(principal="uid:1001")), Closed)
    assert isinstance(front.ask(make_open()), Closed), "without the quota nothing is looked up"


def test_an_event_tells_what_is_left_of_the_hour_beside_what_is_left_of_the_session(notary: Running) -> None:
    session_id = notary.front.ask(make_issue(max_calls=5)).session_id
    notary.front.ask(asked(3, session_id=session_id, has_budget=True))
    event = notary.last_event()
    assert event["budgets_before"] == {"calls_remaining": 5, "calls_remaining_this_hour": 3}
    assert event["budgets_after"] == {"calls_remaining": 4, "calls_remaining_this_hour": 2}


def test_a_refusal_by_quota_or_budget_debits_neither(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=1)).session_id
    assert front.ask(asked(0, session_id=session_id, has_budget=True)).quota == "max_calls_per_hour"
    assert front.ask(ReadBudget(session_id)).remaining == 1
    assert isinstance(front.ask(asked(9, session_id=session_id, has_budget=True)), Closed)
    refusal = front.ask(asked(9, session_id=session_id, has_budget=True))
    assert (refusal.code, refusal.quota) == ("budget_exhausted", None)
    assert counted(notary) == 1
    refusal = front.ask(asked(1, session_id=session_id, has_budget=True))
    assert (refusal.code, refusal.quota) == ("budget_exhausted", None), "the hour ends, and would not help"


def test_a_call_that_no_worker_has_begun_is_given_back_once(notary: Running) -> None:
    front = notary.front
    opened = asked(1)
    front.begin(opened)
    assert counted(notary) == 1
    notary.clock.time += 300
    front.ask(Withdraw(opened.intent_id, "error", "overloaded"))
    assert counted(notary) == 0
    event = notary.last_event()
    assert event["budgets_before"] == event["budgets_after"] == {"calls_remaining_this_hour": 1}


def test_a_call_that_waits_for_a_person_counts_until_it_is_denied_or_expires(notary: Running) -> None:
    front = notary.front
    denied, expired = make_approval(), make_approval()
    assert isinstance(front.ask(held(approval=denied)), HoldInForce)
    assert isinstance(front.ask(held(approval=changed(denied, approval_id="apr_again"))), HoldInForce), (
        "the same call again is no second one"
    )
    assert isinstance(front.ask(held(approval=expired)), HoldInForce)
    assert front.ask(held()).quota == "max_calls_per_hour"
    front.ask(make_claim(denied))
    front.ask(make_denial(denied))
    assert counted(notary) == 1
    notary.clock.time += 300
    front.ask(make_expiry(expired))
    assert counted(notary) == 0


def test_an_approved_call_counts_once_and_comes_back_only_if_it_was_not_executed(notary: Running) -> None:
    front = notary.front
    for is_withdrawn in (False, True):
        approval = make_approval()
        front.ask(held(9, approval=approval))
        front.ask(make_claim(approval))
        opened = asked(9, approver=by_alice(approval), proof=None)
        if is_withdrawn:
            front.begin(opened)
            front.ask(Withdraw(opened.intent_id, "error", "overloaded"))
        else:
            front.ask(opened)
        assert counted(notary) == 1, is_withdrawn


def issue(front: Asker, most: int | None, **given: Any) -> SignedLease | TooManySessions:
    answer: SignedLease | TooManySessions = front.ask(make_issue(max_sessions=most, **given))
    return answer


def test_a_principal_has_no_more_leases_at_once_than_its_quota_and_another_when_one_has_ended(notary: Running) -> None:
    front = notary.front
    assert isinstance(issue(front, 2), SignedLease)
    notary.clock.time += 100
    assert isinstance(issue(front, 2), SignedLease)
    assert issue(front, 2) == TooManySessions(200)
    assert len(notary.events()) == 2, "nothing is written here: the front tells of the refusal"
    front = notary.restart()
    assert issue(front, 2) == TooManySessions(200), "a notary that follows knows"
    assert isinstance(issue(front, None), SignedLease), "without the quota nothing is counted"
    notary.clock.time += 199
    assert issue(front, 2) == TooManySessions(1)
    notary.clock.time += 1
    assert isinstance(issue(front, 2), SignedLease)
