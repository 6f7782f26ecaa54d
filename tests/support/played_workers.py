"""Workers that a test plays for a real notary: they hear words over their channel and tell results, true or not.

`Workers` are those of one gateway, held as its supervisor holds them: both ends of each channel, longer than a notary.
"""

import itertools
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ipc.channel.packets import PacketChannel, packet_pair
from ipc.limits import MAX_AHEAD, MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import NoPermit, NotaryToWorker, Permit, Tied, WorkerToNotary
from ipc.messages.calling import Result, Verification
from ipc.messages.message import Message
from ipc.messages.notarising import TieWorker, WorkerEnded
from ipc.operations.calls import Open
from ipc.protocols.worker import NOTARY_TO_WORKER
from tests.support.readable import readable

SECONDS = 60.0
"""For one message."""

Tell = Callable[[Message, tuple[int, ...]], None]
"""Say something to a notary as its supervisor."""
_ids = itertools.count(1)


def sound_result(call_id: str = "c", **given: Any) -> Result:
    """A worker's report of a successful call without a verifier; `given` are fields."""
    fields: dict[str, Any] = {
        "outcome": "success", "output": '{"a":1}', "failure": None, "verification": Verification("skipped"),
        "observations": (), "fuel_consumed": 1, "duration_us": 1, "io_calls": 0,
    }  # fmt: skip
    return Result(**fields | given | {"call_id": call_id})


class PlayedWorker:
    """A worker's end of its channel with the notary, and the notary's end, which waits for the next notary."""

    def __init__(self, front_id: str) -> None:
        self.worker_id = f"worker-{next(_ids)}"
        self.front_id = front_id
        self.calls: set[str] = set()
        """The calls that its front believes it has."""
        self.words: list[Permit] = []
        """All that it has heard, repeated ones too."""
        self.refused: list[str] = []
        """Calls that it heard NoPermit of."""
        self.runs: list[str] = []
        """Calls that it has run: each time that it did."""
        self.notarys, self.own = packet_pair()
        self.own.settimeout(SECONDS)
        self._told: deque[Result] = deque(maxlen=MAX_AHEAD)
        self._channel: PacketChannel[Any] = PacketChannel(
            self.own, NotaryToWorker, table=NOTARY_TO_WORKER, cap_in=MAX_CONTROL_FRAME,
            cap_out=MAX_RESULT_FRAME,
        )  # fmt: skip

    def hear(self) -> Any:
        """Take the next message."""
        while (message := self._channel.receive()) is None:
            pass
        match message:
            case Permit():
                self.words.append(message)
            case NoPermit():
                self.refused.append(message.call_id)
        return message

    def wait_tied(self) -> None:
        """Until a notary watches the channel."""
        while not isinstance(self.hear(), Tied):
            pass

    def word(self) -> Permit:
        """Take the next word."""
        while not isinstance(message := self.hear(), Permit):
            pass
        return message

    def has_news(self) -> bool:
        """Whether anything waits to be taken."""
        return readable(self.own, 0)

    def tell(self, told: WorkerToNotary) -> None:
        """Any result of any call, or what it saw, once."""
        self._channel.send(told)

    def tell_raw(self, *packets: bytes) -> None:
        """Any packets."""
        for packet in packets:
            self.own.send(packet)

    def run(self, word: Permit, result: Result) -> None:
        """Act as a correct worker on a permit: run the plan once with this result, and repeat an earlier report. It
        keeps a report until it is known to be durable, as workers/worker_loop.py does.
        """
        for kept in [one for one in self._told if one.call_id in word.settled]:
            self._told.remove(kept)
        for kept in self._told:
            if kept.call_id == word.call_id:
                self.tell(kept)
                return
        self.runs.append(word.call_id)
        told = msgspec.structs.replace(result, call_id=word.call_id)
        self._told.append(told)
        self.tell(told)

    def close(self) -> None:
        """Both ends."""
        self.notarys.close()
        self.own.close()


class Workers:
    """Every worker of one gateway, tied to the notary of now.

    Obedient workers run their calls while a caller waits in `serve_until`; a test drives the others.
    """

    def __init__(self, result: Callable[[], Result] = sound_result) -> None:
        """`result` is the result of each call of an obedient worker."""
        self._result = result
        self._tell: Tell | None = None
        self._all: dict[str, PlayedWorker] = {}
        self._obeying: set[str] = set()
        self._of: dict[str, PlayedWorker] = {}

    def tie_all(self, tell: Tell) -> None:
        """A fresh notary: it gets every channel. Before any front is attached, so that no worker need say that it is
        tied."""
        self._tell = tell
        for worker in self._all.values():
            self._tie(worker)

    def start(self, front_id: str, *, obeys: bool = False) -> PlayedWorker:
        """One more, tied."""
        worker = PlayedWorker(front_id)
        self._all[worker.worker_id] = worker
        if obeys:
            self._obeying.add(worker.worker_id)
        self._tie(worker)
        worker.wait_tied()
        return worker

    def end(self, worker: PlayedWorker, reason: str = "SIGKILL") -> None:
        """End its process, and report that to the notary."""
        self.forget(worker)
        self.told(WorkerEnded(worker.worker_id, reason))

    def forget(self, worker: PlayedWorker) -> None:
        """Its process has ended, and there was no notary to be told so."""
        del self._all[worker.worker_id]
        worker.close()

    def told(self, message: Message) -> None:
        """Say something to the notary of now, if there is one."""
        if self._tell is not None:
            self._tell(message, ())

    def runs(self) -> list[str]:
        """Calls that workers which live have run, each as often as it was."""
        return [call_id for worker in self._all.values() for call_id in worker.runs]

    def of(self, intent_id: str) -> PlayedWorker:
        """Which was chosen for a call."""
        return self._of[intent_id]

    def staffed(self, front_id: str, asked: Any, *, obeys: bool = True) -> Any:
        """An Open with a worker that has room, where none is named; asked again it names the same one. Anything else
        as it is."""
        if not isinstance(asked, Open) or (asked.worker_id and asked.worker_id not in self._all):
            return asked
        worker = (
            self._all.get(asked.worker_id) or self._of.get(asked.intent_id) or self._with_room(front_id, obeys=obeys)
        )
        self._of.setdefault(asked.intent_id, worker)
        worker.calls.add(asked.intent_id)
        return msgspec.structs.replace(asked, worker_id=worker.worker_id)

    def ended(self, intent_id: str) -> None:
        """The Open of a call is answered: its worker has room for another one."""
        if (worker := self._of.get(intent_id)) is not None:
            worker.calls.discard(intent_id)

    def serve_until(self, sock: socket.socket) -> None:
        """Let the obedient workers run their calls until there is something to read here. Raises TimeoutError."""
        until = time.monotonic() + SECONDS
        obeying = {
            worker.own.fileno(): worker for name, worker in self._all.items() if name in self._obeying
        }  # fmt: skip
        poll = select.poll()
        for descriptor in (sock.fileno(), *obeying):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000)]
            if not ready:
                raise TimeoutError("the notary says nothing")
            for descriptor in ready:
                if (worker := obeying.get(descriptor)) is not None and isinstance(word := worker.hear(), Permit):
                    worker.run(word, self._result())
            if sock.fileno() in ready:
                return

    def close(self) -> None:
        """The end of the test."""
        for worker in self._all.values():
            worker.close()
        self._all.clear()

    def _with_room(self, front_id: str, *, obeys: bool) -> PlayedWorker:
        for name, worker in self._all.items():
            if worker.front_id == front_id and (name in self._obeying) is obeys and len(worker.calls) < MAX_AHEAD:
                return worker
        return self.start(front_id, obeys=obeys)

    def _tie(self, worker: PlayedWorker) -> None:
        assert self._tell is not None, "no notary was started"
        fds = (worker.notarys.fileno(), worker.own.fileno())
        self._tell(TieWorker(worker.worker_id, worker.front_id), fds)
