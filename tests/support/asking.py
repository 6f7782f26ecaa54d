"""A front's end of the notary's channel that blocks: for tests that ask a real notary one thing after the other."""

import itertools
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError, encode_frame
from ipc.channel.protocol_states import Table
from ipc.limits import MAX_NOTARY_FRAME
from ipc.messages.calling import Result
from ipc.messages.delivering import AskedByDeliverer, NotaryToDeliverer, Welcome, Woken
from ipc.messages.event_reading import AskedByExporter, NotaryToExporter
from ipc.messages.notary_frames import Answered, Begun, FrontFacts, NotaryToFront, NumberedOperation
from ipc.operations.askable import OF_DELIVERERS
from ipc.operations.calls import Open
from ipc.operations.operation import answer_type
from ipc.protocols.deliverer import NOTARY_TO_DELIVERER
from ipc.protocols.exporter import NOTARY_TO_EXPORTER
from ipc.protocols.notary import NOTARY_TO_FRONT
from tests.support.played_workers import PlayedWorker, Workers
from tests.support.readable import readable

ANSWER_SECONDS = 60.0
"""No answer for so long is a failure of the test."""


class Told(Exception):
    """The notary has no answer, and says why."""

    def __init__(self, answered: Answered) -> None:
        super().__init__(f"{answered.problem} ({answered.part}): {answered.cause}")
        self.problem, self.part, self.cause = answered.problem, answered.part, answered.cause


class Asker:
    """One front. `in_force` is the last word of the notary.

    Operations of deliverers go through `deliverer`. A call without a worker gets one of `workers` that obeys: it
    runs while an answer is waited for.
    """

    _union: Any = NotaryToFront
    _table: Table = NOTARY_TO_FRONT
    _asked_in: Any = NumberedOperation

    def __init__(
        self, sock: socket.socket, path: Path, front_id: str = "", workers: Workers | None = None,
        deliverer: Callable[[], "Deliverer"] | None = None,
    ) -> None:  # fmt: skip
        sock.settimeout(ANSWER_SECONDS)
        self.front_id = front_id
        self.in_force: list[FrontFacts] = []
        self.welcomes: list[Welcome] = []
        self.woken: list[tuple[str, ...]] = []
        """Every wake-up that has come: to a deliverer alone."""
        self.frames = 0
        """Messages that have come."""
        self.begun: list[int] = []
        """Numbers of calls that the notary said of that they were begun, in order."""
        self.path = path
        """The notary's database, for looks beside it."""
        self.workers = workers or Workers()
        self._sock = sock
        self._channel: BlockingChannel[Any] = BlockingChannel(
            sock, self._union, table=self._table, cap_in=MAX_NOTARY_FRAME,
            cap_out=MAX_NOTARY_FRAME,
        )  # fmt: skip
        self._deliverer = deliverer
        self._numbers = itertools.count(1)
        self._asked: dict[int, Any] = {}
        self._arrived: dict[int, Answered] = {}

    def send(self, *operations: Any) -> list[int]:
        """Ask all of these in one piece; their numbers."""
        if not operations:
            return []
        numbers = [next(self._numbers) for _ in operations]
        self.resend(dict(zip(numbers, operations, strict=True)))
        return numbers

    def resend(self, asked: dict[int, Any]) -> None:
        """Ask under these numbers, which may have been used before, in one piece."""
        self._numbers = itertools.count(max(asked) + 1)
        staffed = {number: self.workers.staffed(self.front_id, one) for number, one in asked.items()}
        self._asked |= staffed
        self.send_raw(b"".join(encode_frame(self._asked_in(*one), MAX_NOTARY_FRAME) for one in staffed.items()))

    def send_raw(self, data: bytes) -> None:
        """Any bytes."""
        self._sock.sendall(data)

    def heard(self, number: int) -> Answered:
        """The answer to a number as it came. Raises ChannelClosed when the notary has closed this channel."""
        while number not in self._arrived:
            self._hear()
        return self._arrived.pop(number)

    def answer(self, number: int) -> Any:
        """The answer to a number. Raises Told."""
        answered = self.heard(number)
        if answered.problem is not None:
            raise Told(answered)
        return msgspec.msgpack.decode(answered.value, type=answer_type(type(self._asked[number])))

    def ask(self, operation: Any) -> Any:
        """Ask one thing and wait for its answer. Raises Told."""
        if self._deliverer is not None and isinstance(operation, OF_DELIVERERS):
            return self._deliverer().ask(operation)
        return self.answer(self.send(operation)[0])

    def begin(self, asked: Open, worker: PlayedWorker | None = None) -> int:
        """Have a call begun, by a worker that does what the test has it do; its number."""
        if worker is not None:
            asked = msgspec.structs.replace(asked, worker_id=worker.worker_id)
        asked = self.workers.staffed(self.front_id, asked, obeys=False)
        (number,) = self.send(msgspec.structs.replace(asked, wants_begun=True))
        self.wait_begun(number)
        return number

    def wait_begun(self, number: int) -> None:
        """Until the notary says that the call was begun."""
        while number not in self.begun:
            assert number not in self._arrived, self._arrived[number]
            self._hear()

    def finish(self, asked: Open, number: int, result: Result) -> Any:
        """Have the worker of a call that was begun tell this result of it; what the Open comes to."""
        self.workers.of(asked.intent_id).tell(msgspec.structs.replace(result, call_id=asked.intent_id))
        return self.answer(number)

    def close(self) -> None:
        """Leave."""
        self._channel.close()

    def left(self) -> set[int]:
        """Numbers whose answers a notary that was killed has left in the channel, or before: they can still be read."""
        with suppress(ChannelClosed, FrameError, OSError):
            while True:
                self._take(self._channel.receive())
        return set(self._arrived)

    def left_now(self) -> set[int]:
        """Numbers whose answers have come, or come within a moment."""
        if readable(self._sock, 0.01):
            self._channel.fill()
        while (message := self._channel.pending()) is not None:
            self._take(message)
        return set(self._arrived)

    def _hear(self) -> None:
        while (message := self._channel.pending()) is None:
            self.workers.serve_until(self._sock)
            self._channel.fill()
        self._take(message)

    def _take(self, message: Any) -> None:
        self.frames += 1
        match message:
            case FrontFacts():
                self.in_force.append(message)
            case Welcome():
                self.welcomes.append(message)
            case Woken(endpoints):
                self.woken.append(endpoints)
            case Begun(number):
                self.begun.append(number)
            case answered:
                assert answered.number not in self._arrived, "answered twice"
                self._arrived[answered.number] = answered
                if isinstance(asked := self._asked.get(answered.number), Open):
                    self.workers.ended(asked.intent_id)


class EventReader(Asker):
    """The exporter's end of its channel."""

    _union, _table, _asked_in = NotaryToExporter, NOTARY_TO_EXPORTER, AskedByExporter


class Deliverer(Asker):
    """The deliverer's end of its channel."""

    _union, _table, _asked_in = NotaryToDeliverer, NOTARY_TO_DELIVERER, AskedByDeliverer
