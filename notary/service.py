"""The notary at work: whatever has arrived from every front becomes one unit, is written, flushed, and answered.

Single-threaded and blocking. No operation waits for company: while one unit is on its way to the disk the next gathers
by itself. Fronts take turns, so that one which floods waits for itself alone.
"""

import select
import socket
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from ipc import messages as m
from ipc.blocking import BlockingChannel, ChannelClosed
from ipc.exits import Exit
from ipc.framing import FrameError
from ipc.limits import MAX_OPERATIONS
from ipc.logs import log
from ipc.sessions import ProtocolError
from notary.channels import FrontChannel, FrontGone
from notary.operations.table import HANDLERS, WRITING
from notary.reading.queries import newest_time
from notary.state import State
from notary.unit import Outcome, Remembered, Task, Units
from notary.upkeep import Upkeep

IDLE_SECONDS = 0.5
"""Without work for so long, the log of the database is copied into its file."""

REMEMBERED_SECONDS = 30.0
"""No front asks again for what it gave up, which is after ten seconds."""

Control = BlockingChannel[m.StartNotary | m.AttachFront | m.StopNotary]
_encode = msgspec.msgpack.Encoder().encode
_NOTHING = msgspec.Raw(_encode(None))


class Service:
    """Serves the fronts that the supervisor attaches until it says stop."""

    def __init__(self, state: State, control: Control, remembered: Remembered) -> None:
        self._state = state
        self._control = control
        self._remembered = remembered
        self._remembered_until = time.monotonic() + REMEMBERED_SECONDS
        self._units = Units(state, HANDLERS, frozenset(WRITING))
        self._upkeep = Upkeep(state)
        self._poll = select.epoll()
        self._poll.register(control.fileno(), select.EPOLLIN)
        self._fronts: dict[int, FrontChannel] = {}
        self._turn = 0
        self._said: tuple[int, int] = (-1, -1)
        self._in_force: m.InForce | None = None
        self._is_stopping = False
        self._worked_at = time.monotonic()

    def run(self) -> Exit:
        """Until told to stop, or until the supervisor is gone. Raises FrameError, ProtocolError for its mistakes."""
        self._hear_pending()  # what came together with the first message
        while True:
            has_work = any(front.tasks for front in self._fronts.values())
            for descriptor, events in self._poll.poll(0 if has_work else self._patience()):
                if descriptor == self._control.fileno():
                    if self._hear() is Exit.ORPHANED:
                        return Exit.ORPHANED
                else:
                    self._serve(descriptor, events)
            if tasks := list(self._gathered()):
                self._perform(tasks)
                self._worked_at = time.monotonic()
            elif self._is_stopping:
                return Exit.OK
            self._tend()

    def close(self) -> None:
        """Close every front's channel. What was not answered is answered by the next notary."""
        for front in self._fronts.values():
            front.close()
        self._fronts.clear()
        self._poll.close()

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
                case m.AttachFront():
                    self._attach(message)
                case m.StopNotary():
                    self._is_stopping = True

    def _attach(self, message: m.AttachFront) -> None:
        for earlier in [one for one in self._fronts.values() if one.front_id == message.front_id]:
            self._forget(earlier, "has another one")
        front = FrontChannel(message.front_id, socket.socket(fileno=self._control.fds.popleft()))
        self._state.fronts.add(front.front_id)
        self._fronts[front.fileno()] = front
        self._poll.register(front.fileno(), select.EPOLLIN)
        self._send(front, self._told())

    # ----------------------------------------------------------------- fronts

    def _serve(self, descriptor: int, events: int) -> None:
        front = self._fronts.get(descriptor)
        if front is None:
            return
        try:
            if events & select.EPOLLOUT:
                front.flush()
            if events & ~select.EPOLLOUT and front.wants_reading:
                front.receive()
            self._watch(front)
        except FrontGone as error:
            self._drop(front, str(error))
        except (FrameError, ProtocolError) as error:
            self._drop(front, f"broke the protocol: {error}", is_fault=True)

    def _watch(self, front: FrontChannel) -> None:
        wanted = (select.EPOLLIN if front.wants_reading else 0) | (select.EPOLLOUT if front.wants_writing else 0)
        self._poll.modify(front.fileno(), wanted)

    def _drop(self, front: FrontChannel, reason: str, *, is_fault: bool = False) -> None:
        """The front has no channel now. One that lives all the same would refuse every call until it is replaced."""
        self._forget(front, reason, is_fault=is_fault)
        self._control.send(m.FrontDetached(front.front_id))

    def _forget(self, front: FrontChannel, reason: str, *, is_fault: bool = False) -> None:
        (log.error if is_fault else log.info)("a front's channel ended", front=front.front_id, reason=reason)
        del self._fronts[front.fileno()]
        self._state.fronts.discard(front.front_id)
        self._poll.unregister(front.fileno())
        front.close()

    def _gathered(self) -> Iterator[Task]:
        """One unit's tasks: of each front in turn, another one first each time."""
        fronts = list(self._fronts.values())
        self._turn += 1
        fronts = fronts[self._turn % len(fronts) :] + fronts[: self._turn % len(fronts)] if fronts else []
        left = MAX_OPERATIONS
        while left and (busy := [front for front in fronts if front.tasks]):
            share = max(1, left // len(busy))
            for front in busy:
                for _ in range(min(share, len(front.tasks), left)):
                    yield front.tasks.popleft()
                    left -= 1

    def _perform(self, tasks: list[Task]) -> None:
        answered: dict[str, list[m.Answered]] = {}
        fresh = []
        for task in tasks:
            if (known := self._remembered.get((task.front_id, task.number))) is None:
                fresh.append(task)
            else:
                answered.setdefault(task.front_id, []).append(_answer(task, known))
        outcomes = self._units.perform(fresh, self._unheard()) if fresh else []
        for task, outcome in zip(fresh, outcomes, strict=True):
            answered.setdefault(task.front_id, []).append(_answer(task, outcome))
            if type(task.operation) in WRITING and (channel := self._channel(task.front_id)) is not None:
                channel.unheard[task.front_id, task.number] = outcome
        self._tell_changes()
        for front in list(self._fronts.values()):
            woken = self._units.woken.get(front.front_id)
            messages: list[m.Message] = [*answered.get(front.front_id, ()), *([m.Woken(tuple(woken))] if woken else ())]
            if messages:
                self._send(front, *messages)

    def _unheard(self) -> Remembered:
        """Answers of earlier units that the end of this notary would take along, and those of the one before."""
        if self._remembered and time.monotonic() >= self._remembered_until:
            self._remembered = {}
        unheard = dict(self._remembered)
        for front in self._fronts.values():
            unheard |= front.unheard
        return unheard

    def _channel(self, front_id: str) -> FrontChannel | None:
        return next((front for front in self._fronts.values() if front.front_id == front_id), None)

    def _send(self, front: FrontChannel, *messages: m.Message) -> None:
        try:
            for message in messages:
                _queue(front, message)
            front.flush()
            self._watch(front)
        except FrontGone as error:
            self._drop(front, str(error))

    # ----------------------------------------------------------------- what changes

    def _told(self) -> m.InForce:
        """What fronts must know, as it is now."""
        state = self._state
        now = (state.signers.version, -1 if state.epoch is None else state.epoch)
        if self._in_force is None or now != self._said:
            self._said = now
            self._in_force = state.signers.in_force(now[1] if now[1] >= 0 else self._epoch_of_before(), self._newest())
        return self._in_force

    def _epoch_of_before(self) -> int:
        return 0 if self._in_force is None else self._in_force.epoch

    def _newest(self) -> float:
        if self._in_force is not None:
            return self._in_force.newest_evidence
        with self._state.database.unit(writes=False) as connection:
            return newest_time(connection) or 0.0

    def _tell_changes(self) -> None:
        before = self._in_force
        told = self._told()
        if told is not before:
            for front in list(self._fronts.values()):
                self._send(front, told)

    # ----------------------------------------------------------------- time

    def _patience(self) -> float:
        return min(self._upkeep.patience(), IDLE_SECONDS)

    def _tend(self) -> None:
        if task := self._upkeep.due():
            problems: Any = self._units.perform((task,))[0].value
            self._state.signers.complain(problems if isinstance(problems, list) else [])
            self._tell_changes()
        if time.monotonic() - self._worked_at >= IDLE_SECONDS:
            self._state.database.tend()
            self._worked_at = float("inf")


def _queue(front: FrontChannel, message: m.Message) -> None:
    """An answer that is too large for any frame is none: its front hears that, and every other goes on."""
    try:
        front.queue(message)
    except FrameError as error:
        if not isinstance(message, m.Answered):
            raise
        log.error("an answer is too large", front=front.front_id, cause=str(error))
        front.queue(m.Answered(message.number, _NOTHING, "fault", "notary", "the answer is too large"))


def _answer(task: Task, outcome: Outcome) -> m.Answered:
    return m.Answered(task.number, outcome.encoded(), outcome.problem, outcome.part, outcome.cause)
