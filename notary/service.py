"""The notary at work: whatever has arrived from fronts and workers becomes one unit, is written, flushed, and answered.

Single-threaded and blocking. No operation waits for company: while one unit is on its way to the disk the next gathers
by itself. Fronts take turns, so that one which floods waits for itself alone.
"""

import select
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.fds import take
from ipc.evidence.events import ADMIN_DRAIN
from ipc.messages.control import FollowSettings, SettingsFollowed
from ipc.messages.event_reading import AttachEventReader
from ipc.messages.message import Message
from ipc.messages.notarising import (
    AttachDeliverer,
    AttachFront,
    FrontDetached,
    StartNotary,
    StopNotary,
    TieWorker,
    WorkerEnded,
)
from ipc.messages.notary_frames import Answered, FrontFacts
from ipc.messages.pinging import Ping, Pong
from ipc.messages.sealing import CutLedger
from ipc.operations.calls import Assign, Closed, NoSuchWorker, Open, Recall, Refusal, Unbegun, Withdraw, Withdrawn
from ipc.operations.evidence import WriteEvent
from ipc.operations.leases import Issue
from ipc.process.exits import Exit
from ipc.process.logs import log
from ipc.reloadable import with_reloadable
from notary.checkpoints import Checkpoints
from notary.database import DatabaseGone
from notary.operations.closing import Lost, Reported
from notary.operations.leases_and_keys import issue_again
from notary.operations.reconciling import StoreChanged
from notary.operations.table import PERFORMERS, PROVING, WRITING
from notary.peers.executions import Executions
from notary.peers.fronts import Fronts
from notary.sealing.asked import cut_ledger
from notary.state import NotaryState, UnderWay
from notary.units.runner import TransactionRunner, count_backlog
from notary.units.tasks import Looking, Remembered, Started, Task, TaskOutcome
from notary.upkeep.aging import AgedValues
from notary.upkeep.announcing import Announcements
from notary.upkeep.counting import Counting
from notary.upkeep.orphans import Orphans
from notary.upkeep.pace import PacedReads
from notary.upkeep.refusals import CountedRefusals
from notary.upkeep.rounds import Upkeep
from notary.upkeep.sealed_rows import SealedRows

if TYPE_CHECKING:
    from notary.remote_units import RemoteUnits

_decode_end = msgspec.msgpack.Decoder(Closed | Refusal | NoSuchWorker | Unbegun).decode

BACK = "the store lies in the ledger again, and what was done elsewhere is not known here"

Control = BlockingChannel[
    StartNotary
    | AttachFront
    | AttachDeliverer
    | AttachEventReader
    | TieWorker
    | WorkerEnded
    | FollowSettings
    | CutLedger
    | Ping
    | StopNotary
]


class Service:
    """Serves the fronts that the supervisor attaches until it says stop."""

    def __init__(self, state: NotaryState, control: Control, remembered: Remembered) -> None:
        self._state = state
        self._control = control
        self._remembered = remembered
        self._remembered_until = time.monotonic() + state.limits.remembered_seconds
        self._remote = _remote_units(state)
        self._units: TransactionRunner = self._remote or TransactionRunner(state, PERFORMERS)
        self._upkeep = Upkeep(state)
        self._checkpoints = Checkpoints(state)
        self._announcements = Announcements(state)
        self._counting = Counting(state)
        self._orphans = Orphans(state)
        self._poll = select.epoll()
        self._poll.register(control.fileno(), select.EPOLLIN)
        self._executions = Executions(state, self._poll, control.send)
        self._fronts = Fronts(state, self._poll, self._executions.forget_front, self._detached)
        self._reads = PacedReads(self._perform)
        self._refusals = CountedRefusals(state)
        self._sealed_rows = SealedRows(state)
        self._aged = AgedValues(state)
        self._tended = (
            self._upkeep, self._executions, self._checkpoints, self._counting, self._announcements, self._orphans,
            self._refusals, self._sealed_rows, self._aged,
        )  # fmt: skip
        assert state.epoch is not None, "it was read at the start"
        assert state.revoked is not None, "so were they"
        self._said = state.signers.version, state.epoch, state.revoked
        self._in_force = state.signers.in_force(state.epoch, state.newest, tuple(state.revoked))
        self._is_stopping = False
        self._worked_at = time.monotonic()
        if self._remote is not None:
            self._remote.tend()
        elif state.has_other_store:
            self._units.perform((Task("", 0, StoreChanged(BACK)),))

    def run(self) -> Exit:
        """Until told to stop, or until the supervisor is gone. Raises FrameError, ProtocolError for its mistakes."""
        self._hear_pending()  # what came together with the first message
        while True:
            has_work = self._executions.has_tasks or self._fronts.have_tasks or len(self._reads) > 0
            for descriptor, events in self._poll.poll(0 if has_work else self._patience()):
                if descriptor == self._control.fileno():
                    if self._hear() is Exit.ORPHANED:
                        return Exit.ORPHANED
                elif not self._fronts.serve(descriptor, events):
                    self._executions.serve(descriptor)
            told = self._executions.tasks()
            # Operations of fronts go first: a front withdraws a call before it has the worker killed.
            if tasks := [*self._asked(), *told]:
                self._perform(tasks)
            if self._reads.perform_slice() or tasks:
                self._worked_at = time.monotonic()
            elif self._is_stopping:
                return Exit.OK
            self._tend()

    def close(self) -> None:
        """Close every front's channel. The next notary answers the operations that are left."""
        self._fronts.close()
        self._executions.close()
        if task := self._refusals.at_end():
            self._units.perform((task,))
        self._upkeep.close()
        self._announce_now()
        self._announcements.tend()
        self._poll.close()
        if self._state.stores is not None:
            self._state.stores.client.close()

    # ----------------------------------------------------------------- supervisor

    def _hear(self) -> Exit | None:
        try:
            self._control.fill()
        except ChannelClosed:
            return Exit.ORPHANED
        self._hear_pending()
        return None

    def _hear_pending(self) -> None:
        while (message := self._control.pending()) is not None:
            match message:
                case AttachFront():
                    self._fronts.attach(message.front_id, self._taken(), self._told())
                case AttachDeliverer():
                    newest = self._told().newest_evidence
                    self._fronts.attach_deliverer(message.deliverer_id, self._taken(), newest)
                case AttachEventReader():
                    newest = self._told().newest_evidence
                    self._fronts.attach_exporter(message.exporter_id, self._taken(), newest)
                case TieWorker():
                    self._executions.tie(message, self._taken(), self._taken())
                case WorkerEnded():
                    self._executions.note_end(message)
                case FollowSettings():
                    self._follow_settings(message)
                case CutLedger():
                    self._control.send(cut_ledger(self._units, message))
                    self._sealed_rows.begin()
                case Ping():
                    self._control.send(Pong())
                case StopNotary():
                    self._is_stopping = True

    def _follow_settings(self, message: FollowSettings) -> None:
        """Between two units: from the next one on, signatures of removed operators do not count, and removed
        endpoints are notified of nothing new."""
        self._state.settings = with_reloadable(self._state.settings, message.reloadable)
        self._state.backlog.use(self._state.settings.webhooks)
        try:
            count_backlog(self._state)
        except DatabaseGone as error:
            log.warning("what waits for webhooks could not be counted", cause=str(error))
        self._orphans.look_again()
        self._control.send(SettingsFollowed(message.request_id))

    def _taken(self) -> socket.socket:
        (descriptor,) = take(self._control.fds)
        return socket.socket(fileno=descriptor)

    def _detached(self, front_id: str) -> None:
        """Tell the supervisor: a front that lives without a channel refuses every call until it is replaced."""
        self._control.send(FrontDetached(front_id))

    # ----------------------------------------------------------------- units

    def _asked(self) -> Iterator[Task]:
        """Operations of fronts that need a unit. The others are handled here."""
        for task in self._fronts.gathered():
            if isinstance(task.operation, Recall):
                self._executions.recall(task.front_id, task.operation.intent_id)
            elif not self._reads.takes(task):
                yield task

    def _perform(self, tasks: list[Task]) -> None:
        answered: dict[str, list[Message]] = {}
        fresh = []
        for task in tasks:
            if (known := self._remembered.get((task.front_id, task.number))) is None:
                if isinstance(task.operation, Withdraw):
                    self._executions.withdraw(task.front_id, task.operation.intent_id)
                fresh.append(task)
            else:
                if isinstance(task.operation, Issue):
                    known = issue_again(self._state.signers.keys, task.operation, known)
                answered.setdefault(task.front_id, []).append(_answer(task, known))
                if isinstance(task.operation, Open | Assign) and not _has_run(known):
                    self._executions.refuse(task.operation)
        began = time.monotonic_ns()
        if not PROVING.isdisjoint(type(task.operation) for task in fresh):
            self._checkpoints.make()
        outcomes = self._units.perform(fresh, self._unheard()) if fresh else []
        took_us = (time.monotonic_ns() - began) // 1000
        for task, outcome in zip(fresh, outcomes, strict=True):
            if (answer := self._follow(task, outcome, took_us)) is None:
                continue
            answered.setdefault(task.front_id, []).append(answer)
            if type(task.operation) in WRITING:
                self._fronts.note_unheard(task, outcome)
        self._tell_changes()
        self._fronts.say(answered)
        self._fronts.wake(self._units.woken)

    def _follow(self, task: Task, outcome: TaskOutcome, took_us: int) -> Answered | None:
        """Act on the outcome of a task, durable or failed. Return its answer; None for a call that begins now."""
        operation = task.operation
        if isinstance(outcome.value, Started):
            assert isinstance(operation, Open | Assign), "nothing else starts a call"
            intent_id = outcome.value.intent.intent_id
            if (code := self._units.withdrawn.get(intent_id)) is None:
                self._executions.start(
                    task, outcome.value, wants_begun=operation.wants_begun, took_us=took_us, store_us=outcome.store_us
                )  # fmt: skip
                return None
            outcome = TaskOutcome(Refusal(code, "withdrawn before its worker had the word"))
        if isinstance(outcome.value, Looking):
            self._executions.look(task, outcome.value)
            return None
        match operation:
            case Open() | Assign():
                self._executions.refuse(operation)
            case WriteEvent() if operation.event.event_type == ADMIN_DRAIN and outcome.problem is None:
                self._announce_now()
            case Withdraw() if isinstance(outcome.value, Withdrawn) and outcome.value.is_abandoned:
                self._executions.withdrawn(operation.intent_id, operation.error_code)
            case Reported():
                return _end(task, outcome, self._executions.finish(task, operation.result.call_id), took_us)
            case Lost():
                return _end(task, outcome, self._executions.finish(task, operation.intent_id), took_us)
        return _answer(task, outcome)

    def _announce_now(self) -> None:
        """The gateway drains, or ends: this may be the last checkpoint for long."""
        self._checkpoints.make()
        self._announcements.hurry()

    def _unheard(self) -> Remembered:
        """Answers of earlier units that the end of this notary would take along, and those of the one before."""
        if self._remembered and time.monotonic() >= self._remembered_until:
            self._remembered = {}
        return self._remembered | self._fronts.unheard()

    # ----------------------------------------------------------------- what changes

    def _told(self) -> FrontFacts:
        """Epoch, public keys and revocations for fronts; the last known values where they have to be read again."""
        state, (_, epoch, revoked) = self._state, self._said
        epoch = epoch if state.epoch is None else state.epoch
        revoked = revoked if state.revoked is None else state.revoked
        now = (state.signers.version, epoch, revoked)
        if now != self._said:
            self._said = now
            self._in_force = state.signers.in_force(epoch, state.newest, tuple(revoked))
        return self._in_force

    def _tell_changes(self) -> None:
        before = self._in_force
        told = self._told()
        if told is not before:
            self._fronts.say_to_all(told)

    # ----------------------------------------------------------------- time

    def _patience(self) -> float:
        patience = min(self._state.limits.idle_seconds, *(one.patience() for one in self._tended))
        return patience if self._remote is None else min(patience, self._remote.patience())

    def _tend(self) -> None:
        told: dict[str, list[Message]] = {}
        for front_id, message in self._executions.answers():
            told.setdefault(front_id, []).append(message)
        self._fronts.say(told)
        if self._remote is not None and self._remote.tend():
            self._tell_changes()
        if task := self._upkeep.due():
            problems: Any = self._units.perform((task,))[0].value
            self._state.signers.complain(problems if isinstance(problems, list) else [])
            self._tell_changes()
        self._checkpoints.tend()
        self._counting.tend()
        self._sealed_rows.tend()
        if task := self._orphans.due():
            self._orphans.heard(task, self._units.perform((task,))[0])
        if task := self._refusals.due():
            self._units.perform((task,))
        if task := self._aged.due():
            self._aged.heard(self._units.perform((task,))[0])
        self._fronts.wake(self._announcements.tend())
        if time.monotonic() - self._worked_at >= self._state.limits.idle_seconds:
            self._state.database.tend()
            self._worked_at = float("inf")


def _remote_units(state: NotaryState) -> "RemoteUnits | None":
    if state.stores is None:
        return None
    from notary.remote_units import RemoteUnits

    return RemoteUnits(state, state.stores, PERFORMERS)


def _answer(task: Task, outcome: TaskOutcome) -> Answered:
    return Answered(
        task.number, outcome.encoded(), outcome.problem, outcome.part, outcome.cause, store_us=outcome.store_us
    )  # fmt: skip


def _has_run(known: TaskOutcome) -> bool:
    """True for the remembered end of a call. No worker keeps its plan, and none may wait for its front to drop it."""
    try:
        return known.problem is None and isinstance(_decode_end(known.encoded()), Closed)
    except msgspec.ValidationError:
        # SECURITY: a front that asks for a call under the number of something else must not end the notary.
        return False


def _end(task: Task, outcome: TaskOutcome, call: UnderWay | None, receipt_us: int) -> Answered:
    """The answer to the Open of a call that was begun."""
    intent_us, store_us = (0, None) if call is None else (call.intent_us, call.store_us)
    return Answered(
        task.number, outcome.encoded(), outcome.problem, outcome.part, outcome.cause,
        is_begun=outcome.problem is not None, took_us=(intent_us, receipt_us), store_us=store_us,
    )  # fmt: skip
