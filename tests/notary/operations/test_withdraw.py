"""Withdraw: what no worker has begun is given back, exactly once; what one has begun ends when that one does."""

import json
import threading
from uuid import UUID

import pytest

from ipc.operations.calls import Refusal, Withdraw, Withdrawn
from ipc.operations.evidence import ShowReceipt
from ipc.operations.holds import GetHold
from ipc.operations.leases import ReadBudget
from ipc.operations.status import ReadLedger
from tests.notary.running import Running
from tests.notary.samples import call_event, held_and_claimed, make_approved, make_issue, make_open, make_result
from tests.support.asking import Told

ABANDONED = Withdrawn(is_abandoned=True)
RUNS = Withdrawn(is_abandoned=False)


def test_a_call_that_no_worker_has_begun_is_given_back_and_has_an_event_and_no_receipt(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    number = front.begin(asked)
    assert front.ask(ReadBudget(session_id)).remaining == 2
    assert front.ask(Withdraw(asked.intent_id, "error", "overloaded", "no worker in time")) == ABANDONED
    assert front.answer(number) == Refusal("overloaded", "withdrawn before its worker had begun it")
    assert front.ask(ReadBudget(session_id)).remaining == 3
    event = notary.last_event()
    assert UUID(event["event_id"].removeprefix("evt_")).version == 7
    assert {name: event.get(name) for name in ("decision", "error_code", "reason", "intent_id", "grant_id")} == {
        "decision": "error", "error_code": "overloaded", "reason": "no worker in time",
        "intent_id": asked.intent_id, "grant_id": notary.stored("SELECT grant_id FROM intents")[0],
    }  # fmt: skip
    assert event["budgets_before"] == event["budgets_after"] == {"calls_remaining": 3}
    assert "receipt_id" not in event
    assert notary.stored("SELECT * FROM receipts") == []
    assert front.ask(ReadLedger()).unresolved == 0
    assert not notary.workers.of(asked.intent_id).has_news(), "the word was taken back"


def test_a_call_that_is_withdrawn_within_the_unit_that_opens_it_gets_to_no_worker(notary: Running) -> None:
    front, worker = notary.front, notary.workers.start("front-1")
    asked = make_open(worker_id=worker.worker_id)
    opened, withdrawn = front.send(asked, Withdraw(asked.intent_id, "error", "draining"))
    assert front.answer(withdrawn) == ABANDONED
    answer = front.answer(opened)
    assert (answer.code, [event.get("error_code") for event in notary.events()]) == ("draining", ["draining"])
    while worker.has_news():
        worker.hear()
    assert (worker.words, worker.refused) == ([], [asked.intent_id])


def test_a_call_that_its_worker_has_begun_ends_as_cut_when_the_worker_does(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    number = front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    assert front.ask(Withdraw(asked.intent_id, "error", "overloaded")) == RUNS
    assert front.ask(ReadLedger()).unresolved == 1
    notary.workers.end(worker)
    closed = front.answer(number)
    assert (closed.kind, closed.outcome) == ("cancelled", "cut")
    assert json.loads(front.ask(ShowReceipt(closed.receipt_id)).receipt)["normalized_result"]["kind"] == "cancelled"
    assert (front.ask(ReadBudget(session_id)).remaining, front.ask(ReadLedger()).unresolved) == (2, 0)


def test_a_call_that_is_withdrawn_while_its_worker_ends_is_cut(notary: Running) -> None:
    front, asked = notary.front, make_open()
    number = front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    reached, go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        reached.set()
        go_on.wait(60)

    notary.thread.guard_opens(hold_up)
    front.send(make_open())
    assert reached.wait(60)
    (withdrawn,) = front.send(Withdraw(asked.intent_id, "error", "draining"))
    notary.workers.end(worker)
    go_on.set()  # the notary finds both at once
    assert front.answer(withdrawn) == RUNS
    closed = front.answer(number)
    assert (closed.kind, closed.outcome) == ("cancelled", "cut")


def test_a_worker_that_had_ended_its_call_before_it_was_killed_is_believed(notary: Running) -> None:
    front, asked = notary.front, make_open()
    number = front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    assert front.ask(Withdraw(asked.intent_id, "error", "overloaded")) == RUNS
    assert front.finish(asked, number, make_result()).kind == "success"


def test_an_ended_call_is_not_withdrawn_and_a_withdrawn_one_does_not_end_again(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked, ended = (make_open(event=call_event(session_id=session_id), has_budget=True) for _ in range(2))
    front.ask(ended)
    front.begin(asked)
    front.ask(Withdraw(asked.intent_id, "error", "overloaded"))
    for intent_id in (asked.intent_id, ended.intent_id, "intent_unknown"):
        with pytest.raises(Told) as told:
            front.ask(Withdraw(intent_id, "error", "overloaded"))
        assert told.value.problem == "refused"
    assert front.ask(ReadBudget(session_id)).remaining == 2
    assert len(notary.events()) == 3


def test_withdrawals_in_one_unit_give_one_call_back(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    front.begin(asked)
    numbers = front.send(*[Withdraw(asked.intent_id, "error", "overloaded")] * 10)
    assert sorted(str(front.heard(number).problem) for number in numbers) == ["None", *["refused"] * 9]
    assert (front.ask(ReadBudget(session_id)).remaining, len(notary.events())) == (3, 2)


def test_an_approval_fails_with_the_call_that_is_withdrawn(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    asked = make_approved(approval)
    front.begin(asked)
    front.ask(Withdraw(asked.intent_id, "error", "overloaded"))
    ended = front.ask(GetHold(approval.approval_id))
    assert (ended.state, ended.holder, json.loads(ended.outcome)["error_code"]) == ("failed", None, "overloaded")


def test_a_notary_that_follows_does_not_give_back_what_a_worker_may_have_begun(notary: Running) -> None:
    session_id = notary.front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    notary.front.begin(asked)
    front = notary.followed("front-1", {9: Withdraw(asked.intent_id, "error", "overloaded")})
    assert front.answer(9) == RUNS
    assert front.ask(ReadBudget(session_id)).remaining == 2


def test_a_call_whose_worker_has_ended_with_the_notary_before_is_cut_once_it_is_withdrawn(notary: Running) -> None:
    asked = make_open()
    notary.front.begin(asked)
    notary.stop()
    notary.workers.forget(notary.workers.of(asked.intent_id))
    notary.start()
    front = notary.asked_again("front-1", {9: Withdraw(asked.intent_id, "error", "overloaded")})
    assert front.answer(9) == RUNS
    assert front.ask(ReadLedger()).unresolved == 0
    receipt = json.loads(front.ask(ShowReceipt(notary.last_event()["receipt_id"])).receipt)
    assert receipt["normalized_result"]["kind"] == "cancelled"
