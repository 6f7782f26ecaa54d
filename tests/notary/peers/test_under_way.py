"""Calls under way: the end of each when its worker ends, when it is recalled, or when no front waits for it."""

from collections import Counter

import msgspec
import pytest
from msgspec.structs import replace

from ipc.evidence.events import AuditEvent
from ipc.limits import MAX_AHEAD
from ipc.operations.calls import Assign, Closed, NoSuchWorker, Open, Recall, Unbegun, Withdraw
from ipc.operations.intents import ListUnresolved
from ipc.operations.leases import ReadBudget
from notary.ledger.intents import OpenIntent
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import call_event, make_issue, make_note, make_open, make_result
from tests.support.asking import Asker, Told
from tests.support.notary_thread import LIMITS
from tests.support.played_workers import PlayedWorker
from tests.support.supervised import wait_until


def refused(front: Asker, operation: object) -> None:
    with pytest.raises(Told) as told:
        front.ask(operation)
    assert told.value.problem == "refused"


def test_a_call_that_a_dead_worker_had_not_taken_is_given_to_another_one_once(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    number = front.begin(asked)
    notary.workers.end(notary.workers.of(asked.intent_id))
    assert front.answer(number) == Unbegun()
    gone, other, third = (notary.workers.start("front-1") for _ in range(3))
    notary.workers.end(gone)
    assert front.ask(Assign(asked.intent_id, gone.worker_id)) == NoSuchWorker()
    (again,) = front.send(Assign(asked.intent_id, other.worker_id, wants_begun=True))
    front.wait_begun(again)
    word = other.word()
    assert (word.call_id, word.plan_hash) == (asked.intent_id, asked.terms.plan_hash)
    refused(front, Assign(asked.intent_id, third.worker_id))
    other.tell(make_result(call_id=asked.intent_id))
    closed = front.answer(again)
    assert closed.kind == "success"
    refused(front, Assign(asked.intent_id, third.worker_id))
    assert notary.last_event()["receipt_id"] == closed.receipt_id
    assert [len(notary.stored(f"SELECT 1 FROM {table}")) for table in ("intents", "receipts")] == [1, 1]
    assert front.ask(ReadBudget(session_id)).remaining == 2
    assert third.words == []


def test_a_dead_worker_loses_the_call_it_had_taken_and_no_other(notary: Running) -> None:
    front, worker = notary.front, notary.workers.start("front-1")
    calls = [make_open() for _ in range(3)]
    numbers = [front.begin(asked, worker) for asked in calls]
    worker.word()
    notary.workers.end(worker, "SIGKILL")
    closed, *others = (front.answer(number) for number in numbers)
    assert (closed.outcome, others) == ("worker_lost", [Unbegun()] * 2)
    assert "SIGKILL" in closed.reason
    assert notary.last_event()["receipt_id"] == closed.receipt_id
    assert [view.intent_id for view in front.ask(ListUnresolved(9))] == [asked.intent_id for asked in calls[:0:-1]]


def test_the_answer_to_a_call_says_how_long_its_intent_and_its_receipt_took(notary: Running) -> None:
    asked = make_open()
    number = notary.front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    worker.tell(make_result(call_id=asked.intent_id))
    answered = notary.front.heard(number)
    assert (answered.problem, answered.is_begun) == (None, False)
    assert answered.took_us is not None
    assert [0 < took < 60_000_000 for took in answered.took_us] == [True, True]


def test_a_call_whose_front_alone_is_gone_has_its_evidence(notary: Running) -> None:
    front = notary.attach("leaves")
    asked = make_open()
    front.begin(asked)
    front.close()
    notary.workers.of(asked.intent_id).tell(make_result(call_id=asked.intent_id))
    wait_until(lambda: notary.events())
    assert notary.last_event()["intent_id"] == asked.intent_id
    assert notary.front.ask(ListUnresolved(5)) == []


def test_a_recall_takes_back_this_call_alone_and_none_that_was_taken(notary: Running) -> None:
    front, worker = notary.front, notary.workers.start("front-1")
    calls = [make_open() for _ in range(4)]
    numbers = [front.begin(asked, worker) for asked in calls]
    assert worker.word().call_id == calls[0].intent_id
    front.send(Recall(calls[0].intent_id), Recall(calls[2].intent_id))
    assert front.answer(numbers[2]) == Unbegun()
    assert [worker.word().call_id for _ in range(2)] == [calls[1].intent_id, calls[3].intent_id]
    for number in (0, 1, 3):
        assert front.finish(calls[number], numbers[number], make_result()).kind == "success"
    assert not worker.has_news()


def test_a_call_that_was_taken_back_is_withdrawn_with_its_debit_and_has_no_worker_then(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=3)).session_id
    asked = make_open(event=call_event(session_id=session_id), has_budget=True)
    number = front.begin(asked)
    front.send(Recall(asked.intent_id))
    assert front.answer(number) == Unbegun()
    assert front.ask(Withdraw(asked.intent_id, "error", "overloaded")).is_abandoned
    assert front.ask(ReadBudget(session_id)).remaining == 3
    assert notary.last_event()["error_code"] == "overloaded"
    refused(front, Assign(asked.intent_id, notary.workers.start("front-1").worker_id))


@pytest.mark.parametrize(
    ("passes", "reason"), [(True, "passed to another worker"), (False, "together with the notary")]
)
def test_a_call_that_the_notary_before_had_given_to_a_worker_that_is_gone_is_lost(
    notary: Running, passes: bool, reason: str
) -> None:
    asked = make_open()
    number = notary.front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    notary.stop()
    if not passes:
        notary.workers.forget(worker)
    notary.start()
    front = notary.attach("front-1")
    again = Assign(asked.intent_id, notary.workers.start("front-1").worker_id)
    if passes:
        closed = front.ask(again)
    else:
        front.resend({number: msgspec.structs.replace(asked, worker_id=worker.worker_id)})
        closed = front.answer(number)
    assert (closed.outcome, front.ask(ListUnresolved(5))) == ("worker_lost", [])
    assert reason in closed.reason


def test_a_call_whose_word_was_repeated_is_never_given_to_another_worker(notary: Running) -> None:
    worker = notary.workers.start("front-1")
    asked = make_open(worker_id=worker.worker_id, wants_begun=True)
    number = notary.front.begin(asked)
    worker.word()
    front = notary.followed("front-1", {number: asked})
    front.wait_begun(number)
    notary.workers.end(worker)
    assert front.answer(number).outcome == "worker_lost", "it may have run"


# ------------------------------------------------------------------ Begun


def test_a_front_that_asks_for_it_learns_at_once_that_its_call_was_begun(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, begun_seconds=3600.0))
    front, worker = notary.front, notary.workers.start("front-1")
    (silent,) = front.send(make_open(worker_id=worker.worker_id))
    number = front.begin(make_open(), worker)
    front.ask(make_note())
    assert front.begun == [number]
    assert [worker.word().call_id for _ in range(2)]
    for word in worker.words:
        worker.tell(make_result(call_id=word.call_id))
    assert {front.answer(one).kind for one in (silent, number)} == {"success"}
    assert front.begun == [number]


# ------------------------------------------------------------------ intents of an earlier run


def test_an_intent_that_was_written_without_a_worker_is_shown_and_stays_unresolved_for_a_person(
    notary: Running,
) -> None:
    asked = make_open()
    notary.front.begin(asked)
    (context,) = notary.stored("SELECT context FROM intents")
    fields = msgspec.msgpack.decode(context)
    del fields["number"], fields["worker_id"]
    notary.stop()
    notary.execute("UPDATE intents SET context = ?", msgspec.msgpack.encode(fields))
    old = msgspec.msgpack.decode(notary.stored("SELECT context FROM intents")[0], type=OpenIntent)
    assert (old.number, old.worker_id, isinstance(old.event, AuditEvent)) == (0, "", True)
    later = notary.start()
    same = notary.attach("front-1")
    refused(later, Withdraw(asked.intent_id, "error", "overloaded"))
    same.resend({9: asked, 10: Withdraw(asked.intent_id, "error", "overloaded")})
    assert same.heard(9).problem == "refused"
    assert not same.answer(10).is_abandoned, "a worker may have run it"
    assert [view.intent_id for view in later.ask(ListUnresolved(5))] == [asked.intent_id]
    assert notary.events() == []


def running_together(notary: Running, count: int = MAX_AHEAD) -> tuple[PlayedWorker, dict[int, Open]]:
    """A worker that has begun so many calls, and the calls by number."""
    worker = notary.workers.start("front-1")
    calls = [make_open() for _ in range(count)]
    numbers = [notary.front.begin(asked, worker) for asked in calls]
    assert [worker.word().call_id for _ in calls] == [asked.intent_id for asked in calls]
    return worker, dict(zip(numbers, calls, strict=True))


def answers(notary: Running, calls: dict[int, Open]) -> dict[str, Closed]:
    """By intent."""
    return {asked.intent_id: notary.front.answer(number) for number, asked in calls.items()}


def receipts(notary: Running) -> int:
    (count,) = notary.stored("SELECT count(*) FROM receipts")
    return int(count)


def test_reported_calls_of_a_killed_worker_count(notary: Running) -> None:
    worker, calls = running_together(notary)
    told = [asked.intent_id for asked in calls.values()][1::3]
    for name in told:
        worker.tell(make_result(call_id=name))
    notary.workers.end(worker, "SIGKILL")
    closed = answers(notary, calls)
    assert {name for name, one in closed.items() if one.kind == "success"} == set(told)
    assert {one.outcome for name, one in closed.items() if name not in told} == {"worker_lost"}
    assert receipts(notary) == MAX_AHEAD


def test_results_end_their_own_calls_in_whatever_order_they_come(notary: Running) -> None:
    worker, calls = running_together(notary)
    for number, asked in reversed(calls.items()):
        worker.tell(make_result(call_id=asked.intent_id, fuel_consumed=number))
    for number, asked in calls.items():
        closed = notary.front.answer(number)
        assert (closed.kind, closed.runtime["fuel_consumed"]) == ("success", number), asked
    assert receipts(notary) == MAX_AHEAD


def test_a_call_that_is_given_up_is_cut_when_its_worker_ends_and_calls_beside_it_are_lost(notary: Running) -> None:
    worker, calls = running_together(notary, 3)
    _, given_up, _ = calls.values()
    assert not notary.front.ask(Withdraw(given_up.intent_id, "error", "draining")).is_abandoned
    notary.workers.end(worker)
    closed = answers(notary, calls)
    assert {name for name, one in closed.items() if one.outcome == "cut"} == {given_up.intent_id}
    assert Counter(one.outcome for one in closed.values()) == {"worker_lost": 2, "cut": 1}
