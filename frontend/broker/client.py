"""The front's end of its channel to the broker: questions, their answers and their deadlines.

Guarantees that each question ends in its time, with an answer or with the reason for its absence. A broker that does
not answer in time is replaced; the question that it did not answer is not asked again.
"""

import itertools
import math
import socket
from typing import Final, Protocol

import msgspec
import trio

from frontend.deadlines import BrokerDeadlines
from frontend.handed_sockets import HandedSockets
from frontend.telemetry.logs import log
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.configuration.secret_ways import AsToken
from ipc.limits import MAX_BROKER_FRAME
from ipc.messages.brokering import AskKeys, AskToken, BrokerRefused, BrokerToFront, KeysGiven, TokenGiven
from ipc.messages.message import Message
from ipc.protocols.broker import BROKER_TO_FRONT

MAX_OPEN: Final = 1024
"""The most questions of this front at once."""
SAY_AGAIN_SECONDS: Final = 1.0
"""Between two requests for the end of the same broker."""


class BrokerSilent(Exception):
    """The broker gave no answer; the text is the reason."""


class BrokerSupply(Protocol):
    """The supervisor, as far as brokers come from it."""

    def need_broker(self) -> None:
        """Have a broker attached, unless one already is."""

    def replace_broker(self, pid: int, reason: str) -> None:
        """Have this one killed, and another one attached."""


class _OpenQuestion:
    def __init__(self) -> None:
        self.is_settled = trio.Event()
        self.answer: Message | None = None
        self.problem = ""

    def settle(self, answer: Message | None, problem: str = "") -> None:
        self.answer, self.problem = answer, problem
        self.is_settled.set()


def _no_answer(answer: Message) -> BrokerSilent:
    return BrokerSilent(answer.reason if isinstance(answer, BrokerRefused) else "the broker gave another answer")


class BrokerClient:
    """Asks the broker of now. `run` must run meanwhile."""

    def __init__(self, supply: BrokerSupply, deadlines: BrokerDeadlines = BrokerDeadlines()) -> None:
        self.deadlines = deadlines
        self._supply = supply
        self._numbers = itertools.count(1)
        self._open: dict[int, _OpenQuestion] = {}
        self._handed = HandedSockets()
        self._channel: TrioChannel[Message] | None = None
        self._pid = 0
        self._is_up = trio.Event()
        self._serving: trio.CancelScope | None = None
        self._replaced, self._say_again_at = 0, -math.inf

    @property
    def pid(self) -> int | None:
        """The broker of now."""
        return None if self._channel is None else self._pid

    def need(self) -> None:
        """Have a broker started, unless one is here."""
        if self._channel is None:
            self._supply.need_broker()

    def attach(self, sock: socket.socket, pid: int) -> None:
        """Ask the fresh broker from now on."""
        self._handed.put(sock, pid)
        if self._serving is not None:
            self._serving.cancel()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hear brokers, one after the other, until cancelled."""
        task_status.started()
        await self._handed.serve(self._hear)

    async def token(
        self, way: AsToken, client_secret: str, *, principal: str, seconds: float, refused: str | None = None
    ) -> str:
        """A token for one call, within so many seconds and `deadlines.token_seconds`. Raises BrokerSilent."""
        seconds = min(seconds, self.deadlines.token_seconds)
        asked = AskToken(next(self._numbers), principal, seconds, way, client_secret, refused)
        answer = await self._asked(asked, seconds)
        if isinstance(answer, TokenGiven):
            return answer.token
        raise _no_answer(answer)

    async def keys(self, url: str, *, issuer: str, newer_than: float, is_unknown: bool) -> KeysGiven:
        """The keys of an issuer, within `deadlines.keys_seconds`; see AskKeys. Raises BrokerSilent."""
        seconds = self.deadlines.keys_seconds
        asked = AskKeys(next(self._numbers), f"issuer {issuer}", seconds, url, newer_than, is_unknown)
        answer = await self._asked(asked, seconds)
        if isinstance(answer, KeysGiven):
            return answer
        raise _no_answer(answer)

    async def _asked(self, question: AskToken | AskKeys, seconds: float) -> Message:
        if len(self._open) >= MAX_OPEN:
            raise BrokerSilent(f"{MAX_OPEN} questions to the broker are open")
        one = self._open[question.number] = _OpenQuestion()
        ends_at, pid = trio.current_time() + seconds, None
        try:
            with trio.move_on_at(ends_at + self.deadlines.grace_seconds):
                self.need()
                with trio.move_on_at(ends_at):
                    await self._is_up.wait()
                    channel, pid = self._channel, self._pid
                if pid is not None:
                    if channel is not None:
                        left = max(ends_at - trio.current_time(), 0.0)
                        await self._send(channel, msgspec.structs.replace(question, seconds=left), pid)
                    await one.is_settled.wait()
        finally:
            del self._open[question.number]
        if one.answer is not None:
            return one.answer
        if one.problem:
            raise BrokerSilent(one.problem)
        if pid is None:
            raise BrokerSilent(f"no broker was there within {seconds:g} s")
        self._replace(pid, f"no answer within {seconds:g} s")
        raise BrokerSilent(f"the broker did not answer within {seconds:g} s")

    async def _send(self, channel: TrioChannel[Message], question: AskToken | AskKeys, pid: int) -> None:
        try:
            await channel.send(question)
        except OSError:
            self._replace(pid, "its channel broke")
            raise BrokerSilent("the broker ended") from None
        except FrameError as error:
            raise BrokerSilent(str(error)) from None

    def _replace(self, pid: int, reason: str) -> None:
        """Have it replaced: one request for all the questions that it leaves at once. The queue to the supervisor has
        fewer places than these are, and what finds none there is lost."""
        now = trio.current_time()
        if pid != self._replaced or now >= self._say_again_at:
            self._replaced, self._say_again_at = pid, now + SAY_AGAIN_SECONDS
            self._supply.replace_broker(pid, reason)

    async def _hear(self, sock: socket.socket, pid: int) -> None:
        channel: TrioChannel[Message] = TrioChannel(
            sock, BrokerToFront, table=BROKER_TO_FRONT, cap_in=MAX_BROKER_FRAME, cap_out=MAX_BROKER_FRAME
        )
        self._channel, self._pid = channel, pid
        self._is_up.set()
        try:
            with trio.CancelScope() as self._serving:
                while True:
                    self._settle(await channel.receive())
        except (ChannelClosed, OSError):
            log.info("the broker's channel ended", pid=pid)
            self._replace(pid, "it closed a channel")
        except (FrameError, ProtocolError) as error:
            log.error("the broker broke the protocol", pid=pid, cause=str(error))
            self._replace(pid, "it broke the protocol")
        finally:
            self._channel, self._is_up, self._serving = None, trio.Event(), None
            channel.close()
            for one in self._open.values():
                one.settle(None, "the broker ended before it answered")

    def _settle(self, answer: Message) -> None:
        assert isinstance(answer, TokenGiven | KeysGiven | BrokerRefused), "the table lets nothing else come"
        one = self._open.get(answer.number)
        if one is not None:  # else its time is over
            one.settle(answer)
