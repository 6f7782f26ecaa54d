"""Calls under way: the end of each when its worker ends, when it is recalled, or when no front waits for it."""

import os
import select
import socket
from collections.abc import Iterator
from dataclasses import replace
from math import inf

import msgspec
import pytest

from ipc.clock import iso
from ipc.events import AuditEvent
from ipc.expected import ExpectedFile
from ipc.messages import (
    Answered,
    Approver,
    Assign,
    Begun,
    ListUnresolved,
    NoSuchWorker,
    Open,
    ReadBudget,
    ReadEpoch,
    Recall,
    Seen,
    TieWorker,
    Unbegun,
    VerifyIntent,
    Withdraw,
    WorkerEnded,
)
from notary.executions import Executions
from notary.ledger.intents import OpenIntent
from notary.operations.closing import Reported
from notary.operations.verifying import LookedAgain
from notary.unit import Looking, Started, Task
from tests.notary.conftest import StartNotary
from tests.notary.running import Running, walk
from tests.notary.samples import DIGEST, NOW, call_event, make_issue, make_note, make_open, make_result, record_call
from tests.support.asking import Asker, Told
from tests.support.logs import capture_logs
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


def test_of_a_workers_calls_the_one_it_had_taken_is_lost_and_the_others_were_not_begun(notary: Running) -> None:
    front, worker = notary.front, notary.workers.start("front-1")
    calls = [make_open() for _ in range(3)]
    numbers = [front.begin(asked, worker) for asked in calls]
    worker.word()
    notary.workers.end(worker, "SIGKILL")
    closed, *others = (front.answer(number) for number in numbers)
    assert (closed.outcome, others) == ("worker_lost", [Unbegun()] * 2)
    assert "SIGKILL" in closed.reason
    assert notary.last_event()["receipt_id"] == closed.receipt_id
    assert [view.intent_id for view in front.ask(ListUnresolved(9))] == [asked.intent_id for asked in calls[1:]]


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


def test_the_end_of_a_worker_loses_no_call_of_another_one(notary: Running) -> None:
    front, gone, other = notary.front, notary.workers.start("front-1"), notary.workers.start("front-1")
    lost, sound = make_open(), make_open()
    lost_number, sound_number = front.begin(lost, gone), front.begin(sound, other)
    assert (gone.word().call_id, other.word().call_id) == (lost.intent_id, sound.intent_id)
    notary.workers.end(gone)
    assert front.answer(lost_number).outcome == "worker_lost"
    assert front.finish(sound, sound_number, make_result()).kind == "success"


def test_what_a_worker_had_told_before_it_ended_counts(notary: Running) -> None:
    front, asked = notary.front, make_open()
    number = front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    worker.tell(make_result(call_id=asked.intent_id))
    notary.workers.end(worker)
    assert front.answer(number).kind == "success"


class Alone:
    """Executions without a notary around them, a worker of theirs, and a call that it has the word for."""

    def __init__(self, notary: Running) -> None:
        assert notary.thread is not None
        notary.thread.state.limits = replace(LIMITS, begun_seconds=3600.0)
        self.state = notary.thread.state
        self.worker, self.poll = PlayedWorker("front-1"), select.epoll()
        self.under_way = Executions(notary.thread.state, self.poll, lambda _: None)
        ends = [socket.socket(fileno=os.dup(end.fileno())) for end in (self.worker.notarys, self.worker.own)]
        self.descriptor = ends[0].fileno()
        self.under_way.tie(TieWorker(self.worker.worker_id, "front-1"), *ends)
        self.asked = make_open(worker_id=self.worker.worker_id)
        assert self.under_way.patience() == inf
        self.begin(self.asked, 7)
        self.result = make_result(call_id=self.asked.intent_id)

    def begin(self, asked: Open, number: int, approver: Approver | None = None) -> None:
        intent = OpenIntent(
            asked.intent_id, "grant_1", iso(NOW), asked.event, asked.terms, False, approver, "front-1", number,
            self.worker.worker_id,
        )  # fmt: skip
        self.under_way.start(Task("front-1", number, asked), Started(intent), wants_begun=False, took_us=0)

    def close(self) -> None:
        self.under_way.close()
        self.poll.close()
        self.worker.close()


@pytest.fixture
def alone(notary: Running) -> Iterator[Alone]:
    made = Alone(notary)
    yield made
    made.close()


def test_what_arrives_of_a_worker_together_with_its_end_counts(alone: Alone) -> None:
    assert alone.worker.word().call_id == alone.asked.intent_id
    alone.worker.tell(alone.result)
    assert not alone.under_way.has_tasks
    alone.under_way.note_end(WorkerEnded(alone.worker.worker_id, "SIGKILL"))
    assert alone.under_way.has_tasks
    assert alone.under_way.tasks() == [Task("front-1", 7, Reported(alone.result))]
    assert not alone.under_way.has_tasks


def look(alone: Alone, number: int) -> Task:
    """Have the worker look at a file."""
    asked = AuditEvent(event_type="IntentVerification", decision="allow", principal="operator:ops")
    task = Task("front-1", number, VerifyIntent("intent", alone.worker.worker_id, asked))
    file = ExpectedFile("/var/lib/files", "notes/a", DIGEST, 5)
    alone.under_way.look(task, Looking(alone.worker.worker_id, file))
    return task


def test_of_a_front_that_is_gone_nothing_is_told_and_of_others_everything(alone: Alone) -> None:
    look(alone, 8)
    for gone, left in (("front-2", True), ("front-1", False)):
        alone.under_way.forget_front(gone)
        assert (alone.under_way.patience() < inf) == left, "that its call was begun"
    alone.worker.tell(Seen(8, "matches", DIGEST))
    alone.under_way.serve(alone.descriptor)
    assert alone.under_way.tasks() == []


def test_a_look_for_a_front_outlives_the_end_of_another_one(alone: Alone) -> None:
    task = look(alone, 8)
    alone.under_way.forget_front("front-2")
    alone.worker.tell(Seen(8, "matches", DIGEST))
    alone.under_way.serve(alone.descriptor)
    assert [(one.front_id, one.number) for one in alone.under_way.tasks()] == [(task.front_id, task.number)]


def test_a_call_that_was_taken_back_waits_for_a_worker_as_long_as_its_front_is_there(alone: Alone) -> None:
    assert alone.state.given[alone.worker.worker_id] == 1
    alone.under_way.recall("front-1", alone.asked.intent_id)
    assert alone.state.given[alone.worker.worker_id] == 0
    for gone, left in (("front-2", [alone.asked.intent_id]), ("front-1", [])):
        alone.under_way.forget_front(gone)
        assert list(alone.state.unbegun) == left


def test_a_worker_hears_with_the_word_whether_a_person_has_approved_the_call(alone: Alone) -> None:
    alone.begin(make_open(worker_id=alone.worker.worker_id), 8, Approver("apr_1", "ops", "thumbprint", "jti_1"))
    assert [alone.worker.word().is_approved for _ in range(2)] == [False, True]


def test_what_a_worker_tells_is_to_be_done_at_once(alone: Alone) -> None:
    alone.worker.word()
    alone.worker.tell(alone.result)
    alone.under_way.serve(alone.descriptor)
    assert alone.under_way.has_tasks
    assert alone.under_way.tasks() == [Task("front-1", 7, Reported(alone.result))]


def test_of_a_worker_that_tells_much_a_part_is_taken_at_once_and_all_of_it_when_it_has_ended(alone: Alone) -> None:
    alone.worker.word()
    alone.worker.tell(alone.result)
    alone.under_way.serve(alone.descriptor)
    (ended,) = alone.under_way.tasks()
    alone.under_way.finish(ended, alone.asked.intent_id)
    alone.worker.own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for number in range(100, 250):
        look(alone, number)
        alone.worker.hear()
        alone.worker.tell(Seen(number, "matches", DIGEST))
    alone.under_way.serve(alone.descriptor)
    assert [task.number for task in alone.under_way.tasks()] == list(range(100, 100 + 64))
    alone.under_way.note_end(WorkerEnded(alone.worker.worker_id, "exit 0"))
    seen = [
        task.number
        for task in alone.under_way.tasks()
        if isinstance(task.operation, LookedAgain) and task.operation.seen
    ]
    assert seen == list(range(164, 250))


def test_of_several_calls_a_front_is_told_of_those_that_take_long(alone: Alone) -> None:
    alone.under_way.recall("front-1", alone.asked.intent_id)
    alone.under_way.answers()
    long, short = (make_open(worker_id=alone.worker.worker_id) for _ in range(2))
    alone.state.limits = replace(LIMITS, begun_seconds=0.0)
    alone.begin(long, 8)
    alone.state.limits = replace(LIMITS, begun_seconds=3600.0)
    alone.begin(short, 9)
    assert alone.under_way.patience() == 0.0
    assert alone.under_way.answers() == [("front-1", Begun(8))]
    assert 3000 < alone.under_way.patience() <= 3600
    assert alone.state.given[alone.worker.worker_id] == 2
    alone.under_way.finish(Task("front-1", 9, short), short.intent_id)
    assert alone.state.given[alone.worker.worker_id] == 1
    assert alone.under_way.patience() == inf


def test_a_front_is_told_after_a_while_that_its_call_was_begun_and_at_once_that_it_was_not(alone: Alone) -> None:
    assert 0 < alone.under_way.patience() <= 3600
    assert alone.under_way.answers() == []
    alone.under_way.recall("front-1", alone.asked.intent_id)
    assert alone.under_way.patience() == 0
    ((front_id, answered),) = alone.under_way.answers()
    assert isinstance(answered, Answered)
    assert (front_id, answered.number, msgspec.msgpack.decode(answered.value, type=Unbegun)) == (
        "front-1", 7, Unbegun()
    )  # fmt: skip
    assert alone.under_way.patience() == inf, "nobody waits for more"


def test_a_call_whose_front_and_worker_are_both_gone_stays_unresolved(notary: Running) -> None:
    front = notary.attach("leaves")
    asked = make_open()
    front.begin(asked)
    worker = notary.workers.of(asked.intent_id)
    worker.word()
    with capture_logs() as lines:
        front.close()
        wait_until(lambda: [line for line in lines if line["event"] == "a front's channel ended"])
        notary.workers.end(worker)
        wait_until(lambda: [line for line in lines if line.get("intent_id") == asked.intent_id])
    assert [view.intent_id for view in notary.front.ask(ListUnresolved(5))] == [asked.intent_id]
    assert notary.events() == notary.stored("SELECT 1 FROM receipts") == []
    record_call(notary.front)
    assert walk(notary.front).intact


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
    notary.restart()
    front = notary.attach("front-1")
    front.resend({number: asked})
    front.wait_begun(number)
    notary.workers.end(worker)
    assert front.answer(number).outcome == "worker_lost", "it may have run"


# ------------------------------------------------------------------ Begun


def test_that_a_call_was_begun_is_said_at_once_to_who_asked_for_it(start_notary: StartNotary) -> None:
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


def test_that_a_call_was_begun_is_said_after_a_while_to_who_did_not_ask_for_it(notary: Running) -> None:
    front, worker = notary.front, notary.workers.start("front-1")
    asked = make_open(worker_id=worker.worker_id)
    (number,) = front.send(asked)
    front.wait_begun(number)
    assert worker.word().call_id == asked.intent_id
    assert front.finish(asked, number, make_result()).kind == "success"
    front.ask(ReadEpoch())
    assert front.begun == [number]


def test_nothing_is_left_to_be_said_of_a_call_that_has_ended_sooner(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, begun_seconds=3600.0))
    assert notary.thread is not None
    under_way = notary.thread._service._executions
    record_call(notary.front)
    assert (notary.front.begun, under_way.patience()) == ([], float("inf"))
    asked = make_open(worker_id=notary.workers.start("front-1").worker_id)
    notary.front.send(asked)
    notary.front.ask(ReadEpoch())
    assert 3000 < under_way.patience() <= 3600
    notary.front.ask(Withdraw(asked.intent_id, "error", "overloaded"))
    wait_until(lambda: under_way.patience() == float("inf"))
    assert notary.front.begun == []


# ------------------------------------------------------------------ intents of before


def test_an_intent_that_was_written_without_a_worker_is_shown_and_stays_unresolved_for_a_person(
    notary: Running,
) -> None:
    asked = make_open()
    notary.front.begin(asked)
    (context,) = notary.stored("SELECT context FROM intents")
    fields = msgspec.msgpack.decode(context)
    del fields["number"], fields["worker_id"]
    notary.stop()
    with notary.stranger() as stranger:
        stranger.execute("UPDATE intents SET context = ?", (msgspec.msgpack.encode(fields),))
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
