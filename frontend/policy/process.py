"""One policy process as the front sees it: the messages sent, the answers allowed, and why it can't be trusted any
more.

Guarantees that an answer reaches exactly the question it belongs to. An answer to no question, a second answer,
bytes that are no message, a closed channel: each ends the relation with a reason. Never decides what to do about it.
It has AT_ONCE questions at most; those beyond wait here, and principals take turns by the time that theirs took.
"""

import contextlib
import socket
from collections.abc import Callable

import trio

from frontend.deadlines import PolicyDeadlines
from frontend.policy.engine import PolicySources
from frontend.policy.heartbeat import Heartbeat
from ipc.channel.blocking import ChannelClosed
from ipc.channel.fair_queue import FairQueue
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_POLICY_FRAME, MAX_VERDICT_FRAME
from ipc.messages.deciding import Ask, LoadPolicy, PolicyCompiled, PolicyToFront, UsePolicy, Verdict
from ipc.messages.message import Message
from ipc.messages.pinging import Ping, Pong
from ipc.protocols.policy import POLICY_TO_FRONT

AT_ONCE = 4
"""The process answers one after the other; the next ones are with it already, so that it waits for none."""


class ProcessLost(Exception):
    """The process died or was given up; the text says why."""


class PolicyExchange:
    """A question on its way: asked of one process, perhaps of a second one, and settled exactly once."""

    __slots__ = (
        "_settled",
        "attempts",
        "deadline",
        "document",
        "error",
        "id",
        "input",
        "is_given",
        "is_settled",
        "principal",
        "sent_at",
        "trace_id",
    )

    def __init__(
        self, question_id: int, document: dict[str, object], deadline: float, principal: str,
        trace_id: str | None = None,
    ) -> None:  # fmt: skip
        """`trace_id` of the request that asks, for the log of the process."""
        self.id = question_id
        self.principal = principal
        self.input = document
        self.deadline = deadline
        self.trace_id = trace_id
        self.attempts = 0
        self.sent_at = 0.0
        self.is_given = False
        """A process has it, or it waits for its turn there."""
        self.is_settled = False
        self.document: str | None = None
        self.error: tuple[str, str] | None = None
        self._settled = trio.Event()

    def settle(self, document: str | None, error: tuple[str, str] | None = None) -> None:
        """Give it its answer or its error (code and cause). Only the first call has an effect."""
        if not self.is_settled:
            self.is_settled = True
            self.document, self.error = document, error
            self._settled.set()

    async def wait(self) -> None:
        """Until it is settled."""
        await self._settled.wait()


class PolicyProcess:
    """The front's end of one process. `on_settled` is called for every question that was answered."""

    def __init__(
        self, sock: socket.socket, pid: int, on_settled: Callable[[PolicyExchange], None], deadlines: PolicyDeadlines
    ) -> None:  # fmt: skip
        self.pid = pid
        self.in_flight: dict[int, PolicyExchange] = {}
        self._waiting: FairQueue[PolicyExchange] = FairQueue()
        self._has_room = trio.Event()
        self.lost_because: str | None = None
        self.lost = trio.CancelScope()
        self.closed = trio.Event()
        """Set once nothing is asked of it any more."""
        self.heartbeat = Heartbeat()
        self._pinged_at: float | None = None
        self._ponged = trio.Event()
        self._moved_at = 0.0
        self._on_settled = on_settled
        self._deadlines = deadlines
        self._compiling: str | None = None
        self._compiled: tuple[trio.Event, list[PolicyCompiled]] = (trio.Event(), [])
        self._channel: TrioChannel[PolicyToFront] = TrioChannel(
            sock, PolicyToFront, table=POLICY_TO_FRONT,
            cap_in=MAX_VERDICT_FRAME, cap_out=MAX_POLICY_FRAME,
        )  # fmt: skip

    @property
    def is_compiling(self) -> bool:
        """Whether a candidate was sent and has no outcome yet: a question sent now would wait behind it."""
        return self._compiling is not None

    def stalled_for(self) -> float:
        """Seconds since it last answered, or was last given something to do; 0 while it owes nothing."""
        return trio.current_time() - self._moved_at if self._owes else 0.0

    @property
    def _owes(self) -> bool:
        return bool(self.in_flight) or self._pinged_at is not None

    def _give(self) -> float:
        """It is given something to answer now."""
        now = trio.current_time()
        if not self._owes:
            self._moved_at = now
        return now

    def lose(self, reason: str) -> None:
        """Give the process up: nothing that it says from now on counts."""
        if self.lost_because is None:
            self.lost_because = reason
            self.lost.cancel()
            self._compiled[0].set()
            self._ponged.set()

    async def ask(self, asked: PolicyExchange) -> None:
        """Send one question, at once or when it is its principal's turn. It is settled here only when it can't be put
        into a frame."""
        if self.lost_because is not None:
            return
        asked.is_given = True
        if self._waiting or len(self.in_flight) >= AT_ONCE:
            self._waiting.put((asked.principal,), asked)
        else:
            await self._ask_now(asked)

    def withdraw(self, asked: PolicyExchange) -> None:
        """The question is settled: it waits for its turn no longer, if it did."""
        with contextlib.suppress(ValueError):
            self._waiting.remove((asked.principal,), asked)

    def take_waiting(self) -> PolicyExchange | None:
        """The next question that waits for its turn, which is no longer given to this process; None without any."""
        one = self._waiting.take()
        return None if one is None else one[1]

    async def serve_waiting(self) -> None:
        """Send what waits as answers come, until the process is lost."""
        while self.lost_because is None:
            await self._has_room.wait()
            self._has_room = trio.Event()
            while len(self.in_flight) < AT_ONCE and not self.is_compiling and (asked := self.take_waiting()):
                await self._ask_now(asked)

    async def _ask_now(self, asked: PolicyExchange) -> None:
        asked.attempts += 1
        asked.sent_at = self._give()
        self.in_flight[asked.id] = asked
        try:
            await self._send(Ask(asked.id, asked.input, asked.trace_id))
        except ProcessLost:
            return
        except (FrameError, UnicodeEncodeError) as error:
            del self.in_flight[asked.id]
            asked.settle(None, ("policy_engine_unavailable", f"the question can't be sent: {error}"))
            self._on_settled(asked)

    async def compile(self, load_id: str, sources: PolicySources) -> PolicyCompiled:
        """Have a candidate compiled and probed, and return the result. Raises ProcessLost."""
        self._compiling, self._compiled = load_id, (trio.Event(), [])
        try:
            await self._send(LoadPolicy(load_id, sources.modules, sources.data))
            await self._compiled[0].wait()
        except (FrameError, UnicodeEncodeError) as error:
            self._compiling = None
            return PolicyCompiled(load_id, f"it can't be sent: {error}")
        if not self._compiled[1]:
            raise ProcessLost(self.lost_because or "lost")
        return self._compiled[1][0]

    async def use(self, load_id: str) -> None:
        """Put the compiled candidate in force. Raises ProcessLost."""
        await self._send(UsePolicy(load_id))

    async def beat(self) -> None:
        """Ask for signs of life until the process is lost, and give it up once it has been silent for long."""
        deadlines = self._deadlines
        while self.lost_because is None:
            await trio.sleep(deadlines.beat_seconds if self.heartbeat.is_wanted else deadlines.idle_beat_seconds)
            if not self.is_compiling:
                await self._ping()
                await self._until_heard()

    async def proves_life(self) -> bool:
        """True once it has given a sign of life, False once it is closed."""
        if self.is_compiling:
            await self._compiled[0].wait()
        await self._ping()
        if self.lost_because is None:
            await self._ponged.wait()
        if self.lost_because is None:
            return True
        await self.closed.wait()
        return False

    async def _ping(self) -> None:
        """Ask for a sign of life, unless one is asked for already."""
        if self._pinged_at is None:
            self._pinged_at, self._ponged = self._give(), trio.Event()
            with contextlib.suppress(ProcessLost):
                await self._send(Ping())

    async def _until_heard(self) -> None:
        silent, late = self._deadlines.silent_seconds, self._deadlines.late_seconds
        while self._pinged_at is not None and self.lost_because is None:
            due = self._moved_at + silent
            with trio.move_on_at(due):
                await self._ponged.wait()
                return
            if trio.current_time() > due + late:
                await trio.sleep(late)  # this process stood still itself: what came meanwhile is read first
            if self.stalled_for() >= silent:
                self.lose(f"it has answered nothing for {silent:g} s")

    async def _send(self, message: Message) -> None:
        if self.lost_because is not None:
            raise ProcessLost(self.lost_because)
        # Shielded: a frame that is cut costs the channel.
        with trio.CancelScope(deadline=trio.current_time() + self._deadlines.send_seconds, shield=True) as scope:
            try:
                await self._channel.send(message)
            except (OSError, trio.ClosedResourceError) as error:
                self.lose(f"its channel broke: {error or type(error).__name__}")
            except ProtocolError as error:
                self.lose(f"its next message is not allowed: {error}")
        if scope.cancelled_caught:
            self.lose("it does not read its channel")
        if self.lost_because is not None:
            raise ProcessLost(self.lost_because)

    async def listen(self) -> None:
        """Receive until the process is lost; says why in `lost_because`."""
        try:
            while True:
                message = await self._channel.receive()
                match message:
                    case Verdict():
                        self._answer_verdict(message)
                    case PolicyCompiled():
                        self._answer_compiled(message)
                    case Pong():
                        self._answer_pong()
        except ChannelClosed:
            self.lose("it closed its channel")
        except (OSError, trio.ClosedResourceError) as error:
            self.lose(f"its channel broke: {error or type(error).__name__}")
        except (FrameError, ProtocolError) as error:
            self.lose(f"it broke the protocol: {error}")

    def _answer_verdict(self, verdict: Verdict) -> None:
        began, self._moved_at = self._moved_at, trio.current_time()
        asked = self.in_flight.pop(verdict.question_id, None)
        if asked is None:
            raise ProtocolError(f"an answer to question {verdict.question_id}, which is not open")
        if (verdict.document is None) == (verdict.error is None):
            self.in_flight[asked.id] = asked
            raise ProtocolError("an answer must hold either a document or an error")
        self.heartbeat.prove(asked.sent_at)
        if self._waiting:
            self._waiting.charge((asked.principal,), self._moved_at - began)
            self._has_room.set()
        if verdict.document is None:
            asked.settle(None, ("policy_engine_unavailable", f"the engine failed: {verdict.error}"))
        else:
            asked.settle(verdict.document)
        self._on_settled(asked)

    def _answer_pong(self) -> None:
        if self._pinged_at is None:
            raise ProtocolError("a Pong without a Ping")
        self.heartbeat.prove(self._pinged_at)
        self._moved_at, self._pinged_at = trio.current_time(), None
        self._ponged.set()

    def _answer_compiled(self, message: PolicyCompiled) -> None:
        if message.load_id != self._compiling:
            raise ProtocolError(f"PolicyCompiled for {message.load_id!r}, which was not sent")
        self._compiling = None
        self._compiled[1].append(message)
        self._compiled[0].set()
        self._has_room.set()

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()
        self.closed.set()
