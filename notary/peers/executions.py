"""Calls under way: which worker has the word for which intent, its results, and the calls of a worker that ended.

Runs between two units alone. The word goes to a worker once the intent is durable; its result becomes a task of the
next unit, under the number of the call's Open. When a worker ends, the words that it had not taken go to another one. A
call that it had begun is lost, unless its front is gone too: then no front waits, and the intent stays unresolved.
"""

import select
import socket
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from ipc.messages.attesting import NoPermit, Seen
from ipc.messages.calling import Result
from ipc.messages.message import Message
from ipc.messages.notarising import TieWorker, WorkerBroke, WorkerEnded
from ipc.messages.notary_frames import Answered, Begun
from ipc.operations.calls import Assign, Open, Refusal, Unbegun
from ipc.operations.intents import VerifyIntent
from ipc.process.logs import log
from notary.operations.closing import Lost, Reported
from notary.operations.verifying import LookedAgain
from notary.peers.workers import WorkerFault, WorkerLink
from notary.state import NotaryState, UnderWay
from notary.units.tasks import Looking, Started, Task

_encode = msgspec.msgpack.Encoder().encode
_UNBEGUN = msgspec.Raw(_encode(Unbegun()))


class Executions:
    """Executions of one notary. `broke` takes the workers that have to be killed."""

    def __init__(self, state: NotaryState, poll: "select.epoll", broke: Callable[[WorkerBroke], None]) -> None:
        self._state = state
        self._poll = poll
        self._broke = broke
        self._workers: dict[str, WorkerLink] = {}
        self._by_descriptor: dict[int, WorkerLink] = {}
        self._tasks: list[Task] = []
        self._ended: list[WorkerEnded] = []
        self._answers: list[tuple[str, Message]] = []
        self._looks: dict[tuple[str, int], VerifyIntent] = {}
        """Front and number of a look that is under way -> what was asked."""
        self._untold: OrderedDict[tuple[str, int], float] = OrderedDict()
        """(front, number) of calls whose front was not told that they began -> when to tell it."""

    # ----------------------------------------------------------------- workers

    def tie(self, message: TieWorker, sock: socket.socket, others_end: socket.socket) -> None:
        """Watch a worker's channel from now on."""
        worker = WorkerLink(message.worker_id, message.front_id, sock, others_end)
        self._workers[worker.worker_id] = self._by_descriptor[worker.fileno()] = worker
        self._state.workers[worker.worker_id] = worker.front_id
        self._poll.register(worker.fileno(), select.EPOLLIN)

    def forget_front(self, front_id: str) -> None:
        """A front is gone. Calls that were taken back for it stay unresolved; calls of its workers end with them."""
        for intent_id in [key for key, call in self._state.unbegun.items() if call.front_id == front_id]:
            del self._state.unbegun[intent_id]
        for asked in [asked for asked in self._untold if asked[0] == front_id]:
            del self._untold[asked]
        for asked in [asked for asked in self._looks if asked[0] == front_id]:
            del self._looks[asked]

    def note_end(self, message: WorkerEnded) -> None:
        """A worker's process is gone: see `tasks`."""
        self._ended.append(message)

    def serve(self, descriptor: int) -> None:
        """Take what a worker has told. A descriptor of none is no error."""
        worker = self._by_descriptor.get(descriptor)
        if worker is not None:
            self._take(worker, to_the_end=False)

    def tasks(self) -> list[Task]:
        """Results of workers, and calls that were lost with workers, as tasks for the next unit."""
        ended, self._ended = self._ended, []
        for message in ended:
            if (worker := self._workers.get(message.worker_id)) is not None:
                if worker.fileno() in self._by_descriptor:  # SECURITY: one that was given up is not believed any more
                    self._take(worker, to_the_end=True)
                self._tell_unbegun(self._take_back(worker))
                self._lose(worker, message.reason)
                self._forget(worker)
        tasks, self._tasks = self._tasks, []
        return tasks

    def close(self) -> None:
        """Close every channel. The workers stay; the next notary is tied to them."""
        for worker in self._workers.values():
            worker.close()

    def _take(self, worker: WorkerLink, *, to_the_end: bool) -> None:
        try:
            for told in worker.results(to_the_end=to_the_end):
                if isinstance(told, Seen):
                    if worker.accepts_look(told):
                        self._note_look(worker.front_id, told.number, told)
                elif worker.accepts(told):
                    self._note_result(told)
        except WorkerFault as error:
            self._give_up(worker, str(error))

    def _note_result(self, result: Result) -> None:
        call = self._state.under_way[result.call_id]
        self._tasks.append(Task(call.front_id, call.number, Reported(result)))

    def _note_look(self, front_id: str, number: int, seen: Seen | None) -> None:
        """A worker has looked, or ended before it did (`seen` None). The answer to a front that is gone is dropped."""
        if (look := self._looks.pop((front_id, number), None)) is not None:
            self._tasks.append(Task(front_id, number, LookedAgain(look, seen)))

    def _take_back(self, worker: WorkerLink, only: str | None = None) -> list[UnderWay]:
        """Take back the calls that the worker has not taken, or only this one: they are unbegun again."""
        calls = []
        for intent_id in worker.take_back(only):
            call = self._state.unbegun[intent_id] = self._state.under_way.pop(intent_id)
            self._state.given[worker.worker_id] -= 1
            self._untold.pop((call.front_id, call.number), None)
            calls.append(call)
        return calls

    def _tell_unbegun(self, calls: list[UnderWay]) -> None:
        self._answers += [(call.front_id, Answered(call.number, _UNBEGUN)) for call in calls]

    def _lose(self, worker: WorkerLink, reason: str) -> None:
        for number in worker.looks:
            self._note_look(worker.front_id, number, None)
        for intent_id, call in list(self._state.under_way.items()):
            if call.worker_id != worker.worker_id or worker.calls.get(intent_id):
                continue
            if (late := worker.late_result(intent_id)) is not None:
                self._note_result(late)
            elif call.front_id in self._state.fronts:
                self._tasks.append(Task(call.front_id, call.number, Lost(intent_id, f"it ended with {reason}")))
            else:
                del self._state.under_way[intent_id]
                log.error("an intent is left unresolved: its front and its worker are gone", intent_id=intent_id)

    def _give_up(self, worker: WorkerLink, reason: str) -> None:
        """Believe nothing of it any more. Its call is lost when its process has ended."""
        if self._by_descriptor.pop(worker.fileno(), None) is None:
            return
        log.error("a worker is given up", worker_id=worker.worker_id, reason=reason)
        self._poll.unregister(worker.fileno())
        self._state.workers.pop(worker.worker_id, None)
        self._broke(WorkerBroke(worker.worker_id, reason))

    def _forget(self, worker: WorkerLink) -> None:
        del self._workers[worker.worker_id]
        if self._by_descriptor.pop(worker.fileno(), None) is not None:
            self._poll.unregister(worker.fileno())
        worker.close()
        self._state.workers.pop(worker.worker_id, None)
        self._state.given.pop(worker.worker_id, None)

    # ----------------------------------------------------------------- calls

    def start(
        self, task: Task, started: Started, *, wants_begun: bool, took_us: int,
        store_us: dict[str, int] | None = None,
    ) -> None:  # fmt: skip
        """An intent is durable, which took so long: give its worker the word."""
        intent, asked = started.intent, (task.front_id, task.number)
        self._state.under_way[intent.intent_id] = UnderWay(
            *asked, intent.worker_id, took_us, store_us=store_us
        )  # fmt: skip
        if wants_begun:
            self._answers.append((task.front_id, Begun(task.number)))
        else:
            self._untold[asked] = time.monotonic() + self._state.limits.begun_seconds
        self._state.unbegun.pop(intent.intent_id, None)
        worker = self._workers[intent.worker_id]
        self._state.given[worker.worker_id] += 1
        try:
            is_approved = intent.approver is not None
            late = worker.give_word(
                intent.intent_id, intent.terms.plan_hash, is_approved=is_approved, is_repeated=started.is_repeated
            )
        except WorkerFault as error:
            self._give_up(worker, str(error))
        else:
            if late is not None:
                self._note_result(late)

    def look(self, task: Task, looking: Looking) -> None:
        """Have a worker look at a file."""
        assert isinstance(task.operation, VerifyIntent), "nothing else looks again"
        worker = self._workers[looking.worker_id]
        self._looks[task.front_id, task.number] = task.operation
        try:
            worker.look(task.number, looking.verifier_kind, looking.file, self._state.limits.look_seconds)
        except WorkerFault as error:
            self._give_up(worker, str(error))

    def recall(self, front_id: str, intent_id: str) -> None:
        """A front finds that a call of its own waits too long for another one of the same worker."""
        self._tell_unbegun(self._recalled(front_id, intent_id))

    def withdraw(self, front_id: str, intent_id: str) -> None:
        """A front is about to withdraw a call: take it back from its worker if that has not begun it."""
        self._recalled(front_id, intent_id)

    def _recalled(self, front_id: str, intent_id: str) -> list[UnderWay]:
        call = self._state.under_way.get(intent_id)
        worker = None if call is None or call.front_id != front_id else self._workers.get(call.worker_id)
        try:
            return [] if worker is None else self._take_back(worker, intent_id)
        except WorkerFault as error:
            assert worker is not None, "no other one was spoken to"
            self._give_up(worker, str(error))
            return []

    def withdrawn(self, intent_id: str, code: str) -> None:
        """It is withdrawn: its Open is answered so, where that still waits."""
        call = self._state.unbegun.pop(intent_id, None)
        if call is not None:
            refusal = msgspec.Raw(_encode(Refusal(code, "withdrawn before its worker had begun it")))
            self._answers.append((call.front_id, Answered(call.number, refusal)))

    def refuse(self, asked: Open | Assign) -> None:
        """A call was not opened: its plan is not to wait at the worker."""
        worker = self._workers.get(asked.worker_id)
        if worker is None:
            return
        try:
            worker.tell(NoPermit(asked.intent_id))
        except WorkerFault as error:
            self._give_up(worker, str(error))

    def finish(self, task: Task, intent_id: str) -> UnderWay | None:
        """A call has ended, or its end could not be written. None for a call of another notary."""
        call = self._state.under_way.pop(intent_id, None)
        self._untold.pop((task.front_id, task.number), None)
        if call is not None and (worker := self._workers.get(call.worker_id)) is not None:
            worker.finish(intent_id)
            self._state.given[worker.worker_id] -= 1
        return call

    # ----------------------------------------------------------------- late messages to fronts

    @property
    def has_tasks(self) -> bool:
        """True when `tasks` has something."""
        return bool(self._tasks or self._ended)

    def patience(self) -> float:
        """Seconds until `answers` has something to tell."""
        if self._answers:
            return 0.0
        first = next(iter(self._untold.values()), None)
        return float("inf") if first is None else max(0.0, first - time.monotonic())

    def answers(self) -> list[tuple[str, Message]]:
        """Messages that fronts are due now, besides answers to operations."""
        due, self._answers = self._answers, []
        while self._untold and next(iter(self._untold.values())) <= time.monotonic():
            (front_id, number), _ = self._untold.popitem(last=False)
            due.append((front_id, Begun(number)))
        return due
