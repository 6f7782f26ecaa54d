"""The socket to one notary after the other: frames of one turn of the loop are sent together, messages are received.

Guarantees whole frames in order, checked by the session tables in both directions, and that no bytes of one notary are
read as another's. Answers and deadlines are matters of frontend/notary/client.py.
"""

import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import trio

from frontend.notary.pending import PendingOperation
from frontend.telemetry.logs import log
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import Decoder, FrameError
from ipc.channel.protocol_states import ProtocolError, Table, states_of
from ipc.limits import MAX_NOTARY_FRAME
from ipc.messages.delivering import AskedByDeliverer, Welcome, Woken
from ipc.messages.event_reading import AskedByExporter
from ipc.messages.notary_frames import NotaryToFront, NumberedOperation
from ipc.protocols.notary import NOTARY_TO_FRONT

READ_BYTES = 1 << 18


AskedFrame = NumberedOperation | AskedByDeliverer | AskedByExporter


class Dialect(NamedTuple):
    """The protocol with the notary: the frame of an operation, the union of its messages, and their session table."""

    asked: Callable[[int, Any], AskedFrame]
    union: Any
    table: Table


FRONTS: Final = Dialect(NumberedOperation, NotaryToFront, NOTARY_TO_FRONT)
Heard = NotaryToFront | Welcome | Woken


class _Outgoing(trio.abc.Instrument):
    """Sends the frames that one turn of the loop has queued, just before the loop sleeps: no task has to be woken."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush

    def before_io_wait(self, timeout: float) -> None:  # noqa: ARG002
        """The loop has run every task that could run."""
        self._flush()


class Link:
    """The socket of a front, the deliverer or the exporter. `hear` is called with every message; `run` must run
    meanwhile."""

    def __init__(self, hear: Callable[[Heard], None], dialect: Dialect = FRONTS) -> None:
        self._answer = hear
        self._dialect = dialect
        self._queue: list[PendingOperation[Any]] = []
        self._unsent = memoryview(b"")
        self._sock: socket.socket | None = None
        self._decoder: Decoder[Heard] = Decoder(dialect.union, MAX_NOTARY_FRAME)
        self._session, self._sending = states_of(dialect.table)
        self._attached = trio.Event()
        self._is_pushing = False
        self._push = trio.Event()
        self._token = trio.lowlevel.current_trio_token()

    def attach(self, sock: socket.socket, unanswered: list[PendingOperation[Any]]) -> None:
        """Take over the channel of a new notary. Operations that the previous one did not answer are sent again."""
        self.drop()
        sock.setblocking(False)
        self._sock = sock
        self._decoder = Decoder(self._dialect.union, MAX_NOTARY_FRAME)
        self._session, self._sending = states_of(self._dialect.table)
        self._queue = unanswered
        self._attached.set()

    def queue(self, waiter: PendingOperation[Any], asked: AskedFrame) -> None:
        """Send this before the loop sleeps next."""
        self._sending.accept(asked)
        self._queue.append(waiter)

    def forget(self, waiter: PendingOperation[Any]) -> bool:
        """Take an operation out of the queue. False when it has been sent, to this notary or to an earlier one."""
        if waiter.is_sent or waiter not in self._queue:
            return False
        self._queue.remove(waiter)
        return True

    def forget_ended(self) -> None:
        """Drop operations that no task awaits any more."""
        self._queue = [waiter for waiter in self._queue if not waiter.is_done]

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve one notary after the other, until cancelled."""
        outgoing = _Outgoing(self.flush)
        trio.lowlevel.add_instrument(outgoing)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_pushing)
                task_status.started()
                while True:
                    await self._attached.wait()
                    self._attached = trio.Event()
                    await self._hear()
        finally:
            trio.lowlevel.remove_instrument(outgoing)

    def hear_now(self) -> None:
        """Read the messages that have arrived, without waiting. `run` finds and handles their faults."""
        with contextlib.suppress(ChannelClosed, OSError, FrameError, ProtocolError):
            while self._sock is not None and self._take(self._sock):
                pass

    async def _hear(self) -> None:
        sock = self._sock
        if sock is None:
            return
        try:
            while self._sock is sock:
                await trio.lowlevel.wait_readable(sock)
                self._take(sock)
        except (ChannelClosed, OSError, trio.ClosedResourceError):
            reason = "closed its channel"
        except (FrameError, ProtocolError) as error:
            reason = f"broke the protocol: {error}"
        else:
            return
        if self._sock is sock:
            log.warning("the notary is gone; what it did not answer waits for the next one", reason=reason)
            self.drop()

    def _take(self, sock: socket.socket) -> bool:
        """Take one read's worth of answers; False when there is nothing."""
        try:
            data = sock.recv(READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            raise ChannelClosed
        self._decoder.feed(data)
        while (message := self._decoder.next_message()) is not None:
            self._session.accept(message)
            self._answer(message)
        return True

    def flush(self) -> None:
        """Send the queued frames, as far as the socket takes them."""
        sock = self._sock
        if sock is None:
            return
        try:
            while self._unsent or self._queue:
                if not self._unsent:  # not sooner: an operation that is given up meanwhile takes its frame with it
                    self._unsent = memoryview(b"".join([waiter.frame for waiter in self._queue]))
                    for waiter in self._queue:
                        waiter.is_sent = True
                    self._queue.clear()
                self._unsent = self._unsent[sock.send(self._unsent) :]
        except BlockingIOError:
            if not self._is_pushing:
                self._is_pushing = True
                self._token.run_sync_soon(self._push.set)  # which ends the wait that is about to begin, too
        except OSError:
            return  # `run` finds the end too

    async def _keep_pushing(self) -> None:
        """Send the bytes that the socket did not take at once."""
        while True:
            await self._push.wait()
            self._push = trio.Event()
            with contextlib.suppress(OSError, trio.ClosedResourceError):  # `run` finds the end too
                if self._sock is not None and self._unsent:
                    await trio.lowlevel.wait_writable(self._sock)
            self._is_pushing = False
            self.flush()

    def drop(self) -> None:
        """Close the socket, if there is one."""
        sock, self._sock = self._sock, None
        self._unsent = memoryview(b"")
        if sock is not None:
            trio.lowlevel.notify_closing(sock)
            sock.close()
