"""Units performed one after the other: whole, or, where an operation fails, each operation by itself.

Guarantees that an answer exists only for what is durable, that an operation which fails takes no other with it, and
that what a unit answered can be answered again by a notary that follows this one.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ipc.operations.calls import Closed, Open
from ipc.operations.holds import Hold
from ipc.operations.leases import Issue
from ipc.operations.operation import Operation
from ipc.process.clock import ClockWrong
from ipc.process.logs import log
from ipc.texts.canonical import NotCanonical
from notary.database import DatabaseGone, NotStorable, OpenTransaction
from notary.ledger import page_ring
from notary.ledger.outbox import waiting
from notary.ledger.page_ring import RingContent
from notary.state import NotaryState
from notary.store.contract import StoreGone
from notary.units.performing import Performer
from notary.units.tasks import NotAllowed, NotOpen, Remembered, SecretAnswer, Started, Task, TaskOutcome
from notary.units.transaction import Transaction

_encode = msgspec.msgpack.Encoder().encode


class TransactionRunner:
    """Performs tasks, a unit at a time."""

    def __init__(self, state: NotaryState, performers: Mapping[type[Operation[Any]], Performer]) -> None:
        self._state = state
        self._handlers = {operation: one.perform for operation, one in performers.items()}
        self._writes = frozenset(operation for operation, one in performers.items() if one.writes)
        self._settles = frozenset(operation for operation, one in performers.items() if one.settles)
        self.woken: set[str] = set()
        """Endpoints that deliveries were written for since `perform` began."""
        self.withdrawn: dict[str, str] = {}
        """Likewise: see Transaction.withdrawn."""
        self._unheard: Remembered = {}
        self._continues = True
        """Leases may continue sessions, for which the store is asked."""

    def perform(self, tasks: Sequence[Task], unheard: "Remembered | None" = None) -> list[TaskOutcome]:
        """Perform tasks; return the outcome of each, in order. No task can make it raise.

        `unheard` are answers of earlier units that may not have reached their fronts: they are kept with this one's.
        """
        self.woken, self.withdrawn = set(), {}
        self._unheard = unheard or {}
        return self._perform(tasks)

    def _perform(self, tasks: Sequence[Task]) -> list[TaskOutcome]:
        try:
            return self._together(tasks)
        except Exception as error:  # whatever it is, it must not take the others with it
            self._state.forget(is_undone=bool(_notes_of(error)))
            if len(tasks) == 1 or not _notes_of(error):
                # No operation is at fault: the database could not be opened or locked, or did not take the whole.
                return [self._given_up(task, error) for task in tasks]
        return [self._alone(task) for task in tasks]

    def _alone(self, task: Task) -> TaskOutcome:
        try:
            return self._together((task,))[0]
        except Exception as error:
            self._state.forget(is_undone=bool(_notes_of(error)))
            return self._given_up(task, error)

    def _given_up(self, task: Task, error: Exception) -> TaskOutcome:
        """A lease needs no store: where that failed, the lease is issued without continuing a session."""
        if not (self._continues and isinstance(error, StoreGone) and isinstance(task.operation, Issue)):
            return self._failed(task, error)
        self._continues = False
        try:
            return self._alone(task)
        finally:
            self._continues = True

    def _together(self, tasks: Sequence[Task]) -> list[TaskOutcome]:
        state = self._state
        kinds = {type(task.operation) for task in tasks}
        # After a failure every unit writes: that is how it is found out that the disk takes something again.
        is_writing = state.is_failing or not self._writes.isdisjoint(kinds)
        # Queries read tables: all entries are settled first, which needs no flush.
        is_settling = not self._settles.isdisjoint(kinds)
        with state.database.unit(writes=is_writing or is_settling, is_durable=is_writing) as connection:
            unit, unheard = Transaction(state, connection), self._unheard
            try:
                if not unit.store.is_in_ledger:
                    unit.store.foresee(_budgeted(tasks))
                unit.continues = self._continues
                unit.foresee_intents([one.operation.intent_id for one in tasks if isinstance(one.operation, Open)])
                outcomes = [self._performed(unit, task) for task in tasks]
                if is_writing:
                    unheard = self._remember(unit, tasks, outcomes)
                if not unit.store.is_in_ledger:
                    outcomes = _applied(unit, outcomes)
            except Exception as error:
                error.add_note(unit.part)
                raise
        unit.commit()
        self._unheard = unheard
        if is_writing and state.is_failing and (unit.has_taken_room or not state.database.is_shared):
            self._recovered()
        self.withdrawn |= unit.withdrawn
        self.woken |= unit.woken
        return outcomes

    def _performed(self, unit: Transaction, task: Task) -> TaskOutcome:
        unit.front_id, unit.number, unit.part, unit.store_us = task.front_id, task.number, "ledger", {}
        unit.kept = getattr(task.operation, "kept", None)
        try:
            value = self._handlers[type(task.operation)](unit, task.operation)
            value, kept = value if isinstance(value, SecretAnswer) else (value, None)
            if type(value) is Closed:  # the end of a call is remembered and sent: encoded once for both
                value = msgspec.Raw(_encode(value))
            return TaskOutcome(value, kept=kept, store_us=unit.store_us or None)
        except (NotOpen, NotAllowed) as error:
            (log.error if isinstance(error, NotAllowed) else log.warning)(
                "an operation is refused", front=task.front_id, operation=type(task.operation).__name__,
                reason=str(error),
            )  # fmt: skip
            return TaskOutcome(problem="refused", part=unit.part, cause=str(error))

    def _remember(self, unit: Transaction, tasks: Sequence[Task], outcomes: list[TaskOutcome]) -> "Remembered":
        """Write down what is answered now, beside what may not have been heard yet."""
        remembered = dict(self._unheard)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if type(task.operation) in self._writes and not isinstance(outcome.value, Started):
                remembered[task.front_id, task.number] = outcome
        answers = [
            (*asked, bytes(outcome.remembered()), outcome.problem, outcome.part, outcome.cause)
            for asked, outcome in remembered.items()
        ]
        unit.finish(answers)
        return remembered

    def _failed(self, task: Task, error: Exception) -> TaskOutcome:
        part = next(iter(_notes_of(error)), "ledger")
        if isinstance(error, ClockWrong):
            return TaskOutcome(problem="clock", part=part, cause=str(error))
        if isinstance(error, StoreGone):
            return TaskOutcome(problem="unavailable", part=error.part or part, cause=str(error))
        if isinstance(error, DatabaseGone):
            self._state.is_failing = True
            return TaskOutcome(problem="unavailable", part=part, cause=str(error))
        if isinstance(error, OverflowError | NotCanonical | NotStorable):
            kind = type(error).__name__
            log.error("an operation is refused", front=task.front_id, operation=type(task.operation).__name__,
                      reason=f"what it holds can't be written: {kind}")  # fmt: skip
            return TaskOutcome(problem="refused", part=part, cause=kind)
        log.exception("an operation failed", operation=type(task.operation).__name__)
        return TaskOutcome(problem="fault", part=part, cause=type(error).__name__)

    def _recovered(self) -> None:
        self._state.is_failing = False
        log.info("the database can be written again")


def _applied(unit: Transaction, outcomes: list[TaskOutcome]) -> list[TaskOutcome]:
    """Have the store do what the unit asks of it: each request of the unit waits for all of them."""
    began = time.perf_counter_ns()
    unit.apply()
    took_us = (time.perf_counter_ns() - began) // 1000
    return [
        one._replace(store_us={name: took + took_us for name, took in one.store_us.items()}) if one.store_us else one
        for one in outcomes
    ]


def _notes_of(error: Exception) -> list[str]:
    """The part that was at work, if any was; a DatabaseGone is raised from the error that was met."""
    return [note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())]


def _budgeted(tasks: Sequence[Task]) -> set[str]:
    """Sessions that calls of these tasks are charged to."""
    asked = (task.operation for task in tasks)
    return {one.event.session_id or "" for one in asked if isinstance(one, Open | Hold) and one.has_budget}


def remembered(connection: OpenTransaction, contents: RingContent | None = None) -> Remembered:
    """Answers of the last unit before this start: (front, number) -> outcome, its value encoded already. `contents`:
    that unit; without it the newest one of the journal."""
    answers = (contents or page_ring.read(connection)).answers
    if answers is None:
        row = connection.execute("SELECT answers FROM last_unit").fetchone()
        answers = [] if row is None else msgspec.msgpack.decode(row[0], type=list[page_ring.Remembered])
    return {
        (front_id, number): TaskOutcome(msgspec.Raw(value), problem, part, cause)
        for front_id, number, value, problem, part, cause in answers
    }


def count_backlog(state: NotaryState) -> None:
    """Count what waits to be delivered, as the database has it."""
    with state.database.unit(writes=False) as connection:
        state.backlog.found(waiting(connection))
