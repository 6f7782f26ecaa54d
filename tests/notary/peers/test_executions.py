"""Executions without a notary around them: what they take from a worker, and what they say to a front and when."""

import os
import select
import socket
from collections.abc import Iterator
from math import inf

import msgspec
import pytest
from msgspec.structs import replace

from ipc.evidence.events import AuditEvent
from ipc.expected import FileToLeave
from ipc.messages.attesting import Seen
from ipc.messages.notarising import TieWorker, WorkerEnded
from ipc.messages.notary_frames import Answered, Begun
from ipc.operations.calls import Approver, Open, Unbegun
from ipc.operations.intents import VerifyIntent
from ipc.process.clock import iso
from notary.ledger.intents import OpenIntent
from notary.operations.closing import Reported
from notary.operations.verifying import LookedAgain
from notary.peers.executions import Executions
from notary.units.tasks import Looking, Started, Task
from tests.notary.running import Running
from tests.notary.samples import DIGEST, NOW, make_open, make_result
from tests.support.notary_thread import LIMITS
from tests.support.played_workers import PlayedWorker


class Alone:
    """Executions without a notary around them, a worker of theirs, and a call that it has the word for."""

    def __init__(self, notary: Running) -> None:
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


def test_a_result_that_arrives_with_its_workers_end_counts(alone: Alone) -> None:
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
    file = FileToLeave("/var/lib/files", "notes/a", DIGEST, 5)
    alone.under_way.look(task, Looking(alone.worker.worker_id, "fs_hash", file))
    return task


def test_a_gone_front_gets_no_results_and_others_get_theirs(alone: Alone) -> None:
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


def test_a_workers_permit_says_whether_a_person_approved_the_call(alone: Alone) -> None:
    alone.begin(make_open(worker_id=alone.worker.worker_id), 8, Approver("apr_1", "ops", "thumbprint", "jti_1"))
    assert [alone.worker.word().is_approved for _ in range(2)] == [False, True]


def test_a_workers_result_is_due_at_once(alone: Alone) -> None:
    alone.worker.word()
    alone.worker.tell(alone.result)
    alone.under_way.serve(alone.descriptor)
    assert alone.under_way.has_tasks
    assert alone.under_way.tasks() == [Task("front-1", 7, Reported(alone.result))]


def test_many_results_of_a_worker_are_taken_in_parts_and_all_at_its_end(alone: Alone) -> None:
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


def test_a_front_is_notified_only_of_calls_that_take_long(alone: Alone) -> None:
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


def test_a_front_learns_late_that_its_call_was_begun_and_at_once_that_it_was_not(alone: Alone) -> None:
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
