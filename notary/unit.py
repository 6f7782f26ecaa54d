"""One unit: operations of several fronts in one transaction, all durable with one flush of the disk.

Guarantees that an answer exists only for what is durable, that an operation which fails takes no other with it, and
that what a unit answered can be answered again by a notary that follows this one. What is kept in memory changes only
once the transaction is committed.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ipc.canonical import NotCanonical
from ipc.clock import ClockWrong, iso
from ipc.events import AuditEvent
from ipc.identifiers import new
from ipc.logs import log
from ipc.messages import Operation
from notary.backends.sqlite import DatabaseGone
from notary.ledger.intents import OpenIntent
from notary.ledger.outbox import Queued, waiting
from notary.ledger.receipts import Receipt
from notary.ledger.schema import Head, read_head, write_head
from notary.ledger.writing import write_deliveries, write_event
from notary.state import MAX_KNOWN_INTENTS, State
from notary.store import proofs

_encode = msgspec.msgpack.Encoder().encode


class NotOpen(Exception):
    """The operation names an intent that is not open: nothing was written."""


class NotAllowed(Exception):
    """The operation asks for what no sound front asks for: nothing was written. Raised before anything is."""


class Task(NamedTuple):
    """One operation of one front."""

    front_id: str
    number: int
    operation: Operation


class Outcome(NamedTuple):
    """What came of a task: its answer, or why there is none. `cause` is for logs."""

    value: Any = None
    problem: str | None = None
    part: str | None = None
    cause: str | None = None

    def encoded(self) -> msgspec.Raw:
        """The answer as it is sent and kept."""
        return self.value if isinstance(self.value, msgspec.Raw) else msgspec.Raw(_encode(self.value))


class Unit:
    """What operations work with: the open transaction and the moment at which it was begun."""

    def __init__(self, state: State, connection: sqlite3.Connection) -> None:
        self.state = state
        self.connection = connection
        self.part = "ledger"
        """Which part of the database is at work, for errors."""
        self.front_id = ""
        """Whose operation is performed."""
        self.woken: dict[str, set[str]] = {}
        """Front -> endpoints that deliveries were written for."""
        self._now: float | None = None
        self._head = state.head
        self._epoch = state.epoch
        self._opened: dict[str, OpenIntent] = {}
        self._closed: set[str] = set()
        self._queued = Queued()
        self._after: list[Callable[[], None]] = []

    @property
    def now(self) -> float:
        """Unix seconds, the same for the whole unit. Raises ClockWrong."""
        if self._now is None:
            self._now = self.state.clock.now()
        return self._now

    @property
    def epoch(self) -> int:
        """The epoch in force."""
        if self._epoch is None:
            self.part = "store"
            self._epoch = proofs.epoch(self.connection)
        return self._epoch

    def raise_epoch(self, above: int) -> tuple[int, int]:
        """(previous, current)."""
        self.part = "store"
        previous, current = proofs.raise_epoch(self.connection, above)
        self._epoch = current
        return previous, current

    def append(self, event: AuditEvent, receipt: Receipt | None = None, **more: Any) -> None:
        """Complete an event with `more`, link it and write it, with its receipt and its deliveries."""
        self.part = "ledger"
        event = msgspec.structs.replace(event, event_id=new("evt_"), timestamp=iso(self.now), **more)
        if self._head is None:
            self._head = _head_of(self.connection)
        self._head = write_event(self.connection, self._head, event, receipt)
        told = write_deliveries(self.connection, self.state.backlog, event, self._queued)
        if told:
            self.woken.setdefault(self.front_id, set()).update(told)

    def opened(self, intent: OpenIntent) -> None:
        """An intent is written."""
        self._opened[intent.intent_id] = intent

    def closed(self, intent_id: str) -> None:
        """An intent is resolved."""
        self._closed.add(intent_id)

    def intent(self, intent_id: str) -> OpenIntent | None:
        """An open intent that is known without a look at the database."""
        return self._opened.get(intent_id) or self.state.intents.get(intent_id)

    def after(self, follow: Callable[[], None]) -> None:
        """Do this once the unit is committed."""
        self._after.append(follow)

    def finish(self) -> None:
        """Move the head of the chain, inside the transaction that wrote the events."""
        if self._head is not None and self._head != self.state.head:
            write_head(self.connection, self._head)

    def commit(self) -> None:
        """The transaction is committed: follow it in memory."""
        state = self.state
        state.head, state.epoch = self._head, self._epoch
        state.intents.update(self._opened)
        for intent_id in self._closed:
            state.intents.pop(intent_id, None)
        state.backlog.follow(self._queued)
        while len(state.intents) > MAX_KNOWN_INTENTS:
            del state.intents[next(iter(state.intents))]
        for follow in self._after:
            follow()


Handler = Callable[[Unit, Any], Any]


class Units:
    """Performs tasks, a unit at a time."""

    def __init__(self, state: State, handlers: dict[type[Operation], Handler], writes: frozenset[type]) -> None:
        self._state = state
        self._handlers = handlers
        self._writes = writes
        self.woken: dict[str, set[str]] = {}
        """Front -> endpoints that deliveries were written for since `perform` began."""
        self._unheard: Remembered = {}

    def perform(self, tasks: Sequence[Task], unheard: "Remembered | None" = None) -> list[Outcome]:
        """What came of each task, in order. Raises nothing that a task could cause.

        `unheard` are answers of earlier units that may not have reached their fronts: they are kept with this one's.
        """
        self.woken = {}
        self._unheard = unheard or {}
        return self._perform(tasks)

    def _perform(self, tasks: Sequence[Task]) -> list[Outcome]:
        try:
            return self._together(tasks)
        except Exception as error:  # whatever it is, it must not take the others with it
            self._state.forget()
            if len(tasks) == 1 or not _notes_of(error):
                # No operation is at fault: the database could not be opened or locked, or did not take the whole.
                return [self._failed(task, error) for task in tasks]
        return [self._alone(task) for task in tasks]

    def _alone(self, task: Task) -> Outcome:
        try:
            return self._together((task,))[0]
        except Exception as error:
            self._state.forget()
            return self._failed(task, error)

    def _together(self, tasks: Sequence[Task]) -> list[Outcome]:
        state = self._state
        # After a failure every unit writes: that is how it is found out that the disk takes something again.
        is_writing = state.is_failing or any(type(task.operation) in self._writes for task in tasks)
        with state.database.unit(writes=is_writing) as connection:
            unit, unheard = Unit(state, connection), self._unheard
            try:
                outcomes = [self._performed(unit, task) for task in tasks]
                if is_writing:
                    unit.finish()
                    unheard = self._remember(connection, tasks, outcomes)
            except Exception as error:
                error.add_note(unit.part)
                raise
        unit.commit()
        self._unheard = unheard
        if is_writing and state.is_failing:
            self._recovered()
        for front_id, endpoints in unit.woken.items():
            self.woken.setdefault(front_id, set()).update(endpoints)
        return outcomes

    def _performed(self, unit: Unit, task: Task) -> Outcome:
        unit.front_id, unit.part = task.front_id, "ledger"
        try:
            return Outcome(self._handlers[type(task.operation)](unit, task.operation))
        except (NotOpen, NotAllowed) as error:
            (log.error if isinstance(error, NotAllowed) else log.warning)(
                "an operation is refused", front=task.front_id, operation=type(task.operation).__name__,
                reason=str(error),
            )  # fmt: skip
            return Outcome(problem="refused", part=unit.part, cause=str(error))

    def _remember(self, connection: sqlite3.Connection, tasks: Sequence[Task], outcomes: list[Outcome]) -> "Remembered":
        """Write down what is answered now, beside what may not have been heard yet."""
        remembered = dict(self._unheard)
        for task, outcome in zip(tasks, outcomes, strict=True):
            if type(task.operation) in self._writes:
                remembered[task.front_id, task.number] = outcome
        answers = [
            (*asked, bytes(outcome.encoded()), outcome.problem, outcome.part, outcome.cause)
            for asked, outcome in remembered.items()
        ]
        connection.execute("INSERT OR REPLACE INTO last_unit (id, answers) VALUES (1, ?)", (_encode(answers),))
        return remembered

    def _failed(self, task: Task, error: Exception) -> Outcome:
        part = next(iter(_notes_of(error)), "ledger")
        if isinstance(error, ClockWrong):
            return Outcome(problem="clock", part=part, cause=str(error))
        if isinstance(error, DatabaseGone):
            self._state.is_failing = True
            return Outcome(problem="unavailable", part=part, cause=str(error))
        if isinstance(error, OverflowError | NotCanonical):
            kind = type(error).__name__
            log.error("an operation is refused", front=task.front_id, operation=type(task.operation).__name__,
                      reason=f"what it holds can't be written: {kind}")  # fmt: skip
            return Outcome(problem="refused", part=part, cause=kind)
        log.exception("an operation failed", operation=type(task.operation).__name__)
        return Outcome(problem="fault", part=part, cause=type(error).__name__)

    def _recovered(self) -> None:
        self._state.is_failing = False
        log.info("the database can be written again")


def _notes_of(error: Exception) -> list[str]:
    """The part that was at work, if any was; a DatabaseGone is raised from the error that was met."""
    return [note for one in (error, error.__cause__) for note in getattr(one, "__notes__", ())]


_Remembered = tuple[str, int, bytes, str | None, str | None, str | None]
"""Front, number, and the outcome with its value encoded."""
Remembered = dict[tuple[str, int], Outcome]


def remembered(connection: sqlite3.Connection) -> Remembered:
    """What the last unit before this start answered: (front, number) -> outcome, its value encoded already."""
    row = connection.execute("SELECT answers FROM last_unit").fetchone()
    if row is None:
        return {}
    answers = msgspec.msgpack.decode(row[0], type=list[_Remembered])
    return {
        (front_id, number): Outcome(msgspec.Raw(value), problem, part, cause)
        for front_id, number, value, problem, part, cause in answers
    }


def count_backlog(state: State) -> None:
    """Count what waits to be delivered, as the database has it."""
    with state.database.unit(writes=False) as connection:
        state.backlog.found(waiting(connection))


def _head_of(connection: sqlite3.Connection) -> Head:
    head = read_head(connection)
    if head is None:
        raise DatabaseGone("the head of the chain is gone")
    return head
