"""Both peers of one real worker, played by a test: its front, which has plans, and its notary, which has the word."""

import array
import fcntl
import socket
import termios
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psutil

from ipc.channel.blocking import BlockingChannel
from ipc.channel.packets import PacketChannel
from ipc.limits import MAX_CALL_FRAME, MAX_CONTROL_FRAME, MAX_RESULT_FRAME
from ipc.messages.attesting import Tied, WorkerToNotary
from ipc.messages.calling import Result, Secrets, WorkerReady, WorkerToFront
from ipc.messages.message import Message
from ipc.plan import Plan
from ipc.protocols.worker import WORKER_TO_FRONT, WORKER_TO_NOTARY
from tests.support.readable import readable
from tests.support.worker_plans import call_of, word_for

WAIT_SECONDS = 60.0

M = TypeVar("M", bound=Message)


@dataclass
class Worker:
    """One worker, by the ends that its peers have."""

    worker_id: str
    pid: int
    sock: socket.socket
    """The front's end."""
    attesting: socket.socket
    """The notary's end."""
    kept: socket.socket
    """A copy of the worker's own end of its channel with the notary, as supervisor and notary keep one."""
    calls: int = 0
    unsaid: list[str] = field(default_factory=list)
    """Calls that have ended, which the worker was not told."""

    def __post_init__(self) -> None:
        for sock in (self.sock, self.attesting):
            sock.settimeout(WAIT_SECONDS)
        self.channel: BlockingChannel[Any] = BlockingChannel(
            self.sock, WorkerToFront, table=WORKER_TO_FRONT, cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CALL_FRAME,
        )  # fmt: skip

    def tie(self) -> None:
        """Replace the notary by a new one, which has none of the earlier messages, nor half of one."""
        self.notary: PacketChannel[WorkerToNotary] = PacketChannel(
            self.attesting, WorkerToNotary, table=WORKER_TO_NOTARY, cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CONTROL_FRAME,
        )  # fmt: skip
        self.notary.send(Tied())

    def meet(self) -> None:
        """Speak as its first notary, and read WorkerReady."""
        self.tie()
        self.ready = self.receive(WorkerReady)

    def receive(self, kind: type[M]) -> M:
        """The next message to the front, which must be of this kind."""
        message = self.channel.receive()
        assert isinstance(message, kind), message
        return message

    def give(self, plan: Plan, call_id: str, secrets: Mapping[str, str] | None = None) -> None:
        """The front's part of a call: the plan, and what it needs."""
        self.channel.send(call_of(plan, call_id))
        if secrets is not None:
            self.channel.send(Secrets(call_id, dict(secrets)))

    def allow(self, plan: Plan, call_id: str, **changes: Any) -> None:
        """The notary's part: the word, with what has ended since the last one."""
        settled, self.unsaid = tuple(self.unsaid), []
        self.notary.send(word_for(plan, call_id, **({"settled": settled} | changes)))

    def start(self, plan: Plan, call_id: str) -> None:
        """Both parts of a call without secrets: the plan, and the word for it."""
        self.give(plan, call_id)
        self.allow(plan, call_id)

    def told(self) -> WorkerToNotary:
        """The next message to the notary."""
        while (told := self.notary.receive()) is None:
            pass
        return told

    def attested(self) -> Result:
        """The next result that the notary hears."""
        result = self.told()
        assert isinstance(result, Result), result
        return result

    def ended(self, call_id: str) -> Result:
        """The next result, which both peers must hear alike, and which must be of this call."""
        result = self.attested()
        assert self.receive(Result) == result
        assert result.call_id == call_id
        self.unsaid.append(call_id)
        return result

    def call(
        self, plan: Plan, call_id: str | None = None, *, secrets: Mapping[str, str] | None = None, **word: Any
    ) -> Result:
        """Run one plan, from its beginning to the result that both peers hear; `word` replaces fields of the word."""
        self.calls += 1
        call_id = call_id or f"call-{self.calls}"
        rest = self.channel.begin(call_of(plan, call_id))
        self.allow(plan, call_id, **word)
        self.channel.finish(rest)  # a large plan is read once the permit has come
        if secrets is not None:
            self.channel.send(Secrets(call_id, dict(secrets)))
        return self.ended(call_id)

    def raw(self, data: bytes) -> None:
        """Bytes as they are, for hostile fronts."""
        self.sock.sendall(data)

    def packet(self, data: bytes) -> None:
        """A packet as it is, for hostile notaries."""
        self.attesting.send(data)

    def take_back(self) -> list[bytes]:
        """Read the notary's messages that the worker has not read, at the worker's own end."""
        packets = []
        try:
            while True:
                packets.append(self.kept.recv(65_537, socket.MSG_DONTWAIT))
        except BlockingIOError:
            return packets

    def has_heard(self) -> bool:
        """True when the worker has taken all that front and notary have sent."""
        try:
            self.kept.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            unread = array.array("i", [0])
            fcntl.ioctl(self.sock, termios.TIOCOUTQ, unread)
            return unread[0] == 0
        return False

    def has_told(self) -> bool:
        """True when the notary has something to read."""
        return readable(self.attesting, 0)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds, which must be soon, and while the worker lives."""
        deadline = time.monotonic() + WAIT_SECONDS
        process = psutil.Process(self.pid)
        while not condition():
            assert time.monotonic() < deadline, "it did not come true in time"
            assert process.status() != psutil.STATUS_ZOMBIE, "the worker ended"
            time.sleep(0.002)

    def wait_computing(self) -> None:
        """Wait until the worker is in the middle of what it computes."""
        process = psutil.Process(self.pid)
        self.wait_for(lambda: sum(process.cpu_times()[:2]) >= 0.1)

    def hang_up(self) -> None:
        """The front goes."""
        self.channel.close()

    def close(self) -> None:
        """Front, notary and supervisor go."""
        self.hang_up()
        self.attesting.close()
        self.kept.close()
