"""Calls that run beside each other in one worker: words, results and ends, as many as one worker may have."""

from collections import Counter

from ipc.limits import MAX_AHEAD
from ipc.operations.calls import Closed, Open, Withdraw
from ipc.operations.intents import ListUnresolved
from tests.notary.running import Running, walk
from tests.notary.samples import make_open, make_result
from tests.support.played_workers import PlayedWorker


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


def test_a_worker_that_is_killed_with_all_its_calls_under_way_leaves_a_receipt_for_each(notary: Running) -> None:
    worker, calls = running_together(notary)
    notary.workers.end(worker, "SIGKILL")
    closed = answers(notary, calls)
    assert Counter(one.outcome for one in closed.values()) == {"worker_lost": MAX_AHEAD}
    assert len({one.receipt_id for one in closed.values()}) == MAX_AHEAD
    assert receipts(notary) == MAX_AHEAD
    assert notary.front.ask(ListUnresolved(MAX_AHEAD)) == []
    assert walk(notary.front).intact


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


def test_a_call_that_is_given_up_ends_as_its_worker_tells_while_others_go_on(notary: Running) -> None:
    worker, calls = running_together(notary, 3)
    (number, given_up), *others = calls.items()
    assert not notary.front.ask(Withdraw(given_up.intent_id, "error", "draining")).is_abandoned
    worker.tell(make_result("timeout", call_id=given_up.intent_id))
    assert notary.front.answer(number).outcome == "timeout"
    for one, asked in others:
        worker.tell(make_result(call_id=asked.intent_id))
        assert notary.front.answer(one).kind == "success"
    assert receipts(notary) == 3
