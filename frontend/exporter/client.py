"""Gives calls that have ended to the exporter, in batches, behind the calls' backs.

Guarantees that no call waits: `give` keeps a call or drops another one, and a task sends what is kept. One batch is
under way at a time; while the collector does not answer, what does not fit is dropped and counted. A batch whose
exporter ends meanwhile is dropped: it may have arrived.
"""

import itertools
import socket
from typing import Final, Protocol

import trio

from frontend.exporter.outbox import CallOutbox
from frontend.handed_sockets import HandedSockets
from frontend.telemetry.logs import log
from frontend.telemetry.metrics import DROPPED, EXPORTED, Metrics
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_EXPORT_FRAME
from ipc.messages.exporting import CallsExported, ExportCalls, ExportedCall, ExporterToFront
from ipc.messages.message import Message
from ipc.protocols.exporter import EXPORTER_TO_FRONT

MOST_WAITING: Final = 2048
MOST_IN_BATCH: Final = 512
GATHER_SECONDS: Final = 1.0
"""From the first call of a batch to its sending: one batch costs much less than as many as there are calls."""
ANSWER_SECONDS: Final = 60.0
"""The exporter answers sooner, whatever the collector does."""
IDLE_SECONDS: Final = 60.0
"""So long after the last call the exporter gets a batch without calls: one that hangs is replaced, since events wait
for it, too."""
_LOST: Final = (ChannelClosed, OSError, FrameError, ProtocolError, trio.TooSlowError)


class ExporterSupply(Protocol):
    """The supervisor, as far as exporters come from it."""

    def replace_exporter(self, pid: int, reason: str) -> None:
        """Have this one killed, and another one attached."""


class ExporterClient:
    """Gives calls to the exporter of now. `run` must run meanwhile."""

    def __init__(self, supply: ExporterSupply, metrics: Metrics) -> None:
        self._supply = supply
        self._spans = metrics.otlp_spans
        self._waiting = CallOutbox(MOST_WAITING)
        self._has_some = trio.Event()
        self._numbers = itertools.count(1)
        self._handed = HandedSockets()
        self._is_failing = False
        """The collector did not take the last batch."""

    def give(self, call: ExportedCall) -> None:
        """Have a call exported, if there is room for it."""
        lost = self._waiting.add(call)
        if lost is not None:
            self._spans.add(DROPPED, times=lost.spans)
        self._has_some.set()

    def attach(self, sock: socket.socket, pid: int) -> None:
        """A fresh exporter: batches go there from now on."""
        self._handed.put(sock, pid)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve one exporter after the other, until cancelled."""
        task_status.started()
        await self._handed.serve(self._feed)

    async def _feed(self, sock: socket.socket, pid: int) -> None:
        channel: TrioChannel[Message] = TrioChannel(
            sock, ExporterToFront, table=EXPORTER_TO_FRONT, cap_in=MAX_EXPORT_FRAME,
            cap_out=MAX_EXPORT_FRAME,
        )  # fmt: skip
        calls: tuple[ExportedCall, ...] = ()
        try:
            while True:
                await self._gathered()
                # Raises if the exporter has ended: the calls wait for its successor.
                if channel.receive_now() is not None:
                    raise ProtocolError("an answer to no batch")
                calls = self._waiting.take(MOST_IN_BATCH)
                self._note(calls, await _exported(channel, ExportCalls(next(self._numbers), calls)))
                calls = ()
        except _LOST as error:
            reason = "no answer in time" if isinstance(error, trio.TooSlowError) else "its channel ended"
            log.info("the exporter's channel ended", pid=pid, cause=str(error) or reason)
            self._supply.replace_exporter(pid, reason)
        finally:
            self._spans.add(DROPPED, times=sum(call.spans for call in calls))
            channel.close()

    async def _gathered(self) -> None:
        """Wait until there are calls, and a moment for more; IDLE_SECONDS at most without one."""
        with trio.move_on_after(IDLE_SECONDS):
            while not self._waiting:
                self._has_some = trio.Event()
                await self._has_some.wait()
        if 0 < len(self._waiting) < MOST_IN_BATCH:
            await trio.sleep(GATHER_SECONDS)

    def _note(self, calls: tuple[ExportedCall, ...], answer: CallsExported) -> None:
        spans = sum(call.spans for call in calls)
        dropped = min(max(answer.dropped, 0), spans)
        self._spans.add(EXPORTED, times=spans - dropped)
        self._spans.add(DROPPED, times=dropped)
        if not calls:
            return
        if bool(answer.problem) != self._is_failing:
            self._is_failing = bool(answer.problem)
            if self._is_failing:
                log.warning("spans are dropped: the collector does not take them", cause=answer.problem[:200])
            else:
                log.info("the collector takes spans again")


async def _exported(channel: TrioChannel[Message], asked: ExportCalls) -> CallsExported:
    with trio.fail_after(ANSWER_SECONDS):
        await channel.send(asked)
        answer = await channel.receive()
    assert isinstance(answer, CallsExported), "the union has nothing else"
    if answer.number != asked.number:
        raise ProtocolError("an answer to another batch")
    return answer
