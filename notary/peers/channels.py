"""The notary's ends of the channels to fronts, deliverer and exporter: what has arrived, and what is still to be sent.

Guarantees bounded memory for each: a front that does not read its answers is not read from, and delays no other. A
front that breaks the protocol loses its channel.
"""

import select
import socket
from collections import deque
from typing import Any, Final, NamedTuple

from ipc.channel.framing import Decoder, encode_frame
from ipc.channel.protocol_states import Table, states_of
from ipc.limits import MAX_NOTARY_FRAME, MAX_OPERATIONS
from ipc.messages.delivering import AskedByDeliverer, DelivererToNotary
from ipc.messages.event_reading import AskedByExporter, ExporterToNotary
from ipc.messages.message import Message
from ipc.messages.notary_frames import FrontToNotary, NumberedOperation
from ipc.protocols.deliverer import DELIVERER_TO_NOTARY
from ipc.protocols.exporter import EXPORTER_TO_NOTARY
from ipc.protocols.notary import FRONT_TO_NOTARY
from notary.state import NotaryLimits
from notary.units.tasks import Remembered, Task

READ_BYTES = 1 << 18


class FrontGone(Exception):
    """The front closed its channel, or does not take its answers."""


class PeerKind(NamedTuple):
    """The kind of process at the other end: what it may ask, and when."""

    ended_line: str
    """The log line when its channel has ended."""
    union: Any
    table: Table


FRONT: Final = PeerKind("a front's channel ended", FrontToNotary, FRONT_TO_NOTARY)
DELIVERER: Final = PeerKind("the deliverer's channel ended", DelivererToNotary, DELIVERER_TO_NOTARY)
"""SECURITY: what it asks is held against a union of its own: it reaches deliveries and nothing else."""
EXPORTER: Final = PeerKind("the exporter's channel ended", ExporterToNotary, EXPORTER_TO_NOTARY)
"""SECURITY: likewise: it reads events and nothing else."""


class FrontChannel:
    """One front, the deliverer or the exporter. Non-blocking."""

    def __init__(self, front_id: str, sock: socket.socket, limits: NotaryLimits, kind: PeerKind = FRONT) -> None:
        sock.setblocking(False)
        self.front_id = front_id
        self.kind = kind
        self.tasks: deque[Task] = deque()
        """Asked and not performed yet, in order."""
        self.unheard: Remembered = {}
        """Answers to operations that wrote, as long as something waits for the socket: they may not have left."""
        self.watched = select.EPOLLIN
        """Events that epoll waits for; the owner of the epoll sets it."""
        self._sock = sock
        self._decoder: Decoder[NumberedOperation | AskedByDeliverer | AskedByExporter] = Decoder(
            kind.union, MAX_NOTARY_FRAME
        )
        self._session, self._sending = states_of(kind.table)
        self._limits = limits
        self._unsent = bytearray()

    @property
    def is_front(self) -> bool:
        """True for a front."""
        return self.kind is FRONT

    def fileno(self) -> int:
        """For epoll."""
        return self._sock.fileno()

    @property
    def wants_reading(self) -> bool:
        """More may be taken from this front now."""
        return not self._unsent and len(self.tasks) < MAX_OPERATIONS

    @property
    def wants_writing(self) -> bool:
        """Answers wait for the socket."""
        return bool(self._unsent)

    def receive(self) -> None:
        """Take what has arrived. Raises FrontGone, FrameError, ProtocolError."""
        while True:
            try:
                data = self._sock.recv(READ_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                raise FrontGone(str(error)) from None
            if not data:
                raise FrontGone("closed its channel" + ("" if self._decoder.is_empty else " inside a frame"))
            self._decoder.feed(data)
            while (asked := self._decoder.next_message()) is not None:
                self._session.accept(asked)
                self.tasks.append(Task(self.front_id, asked.number, asked.operation))
            if len(data) < READ_BYTES or not self.wants_reading:
                return

    def queue(self, message: Message) -> None:
        """Keep a message for the next `flush`. Raises FrameError for one that is too large, ProtocolError for
        one that is out of turn."""
        self._sending.accept(message)
        self._unsent += encode_frame(message, self._limits.answer_bytes)

    def flush(self) -> None:
        """Send what was kept, as far as the socket takes it. Raises FrontGone."""
        if len(self._unsent) > self._limits.unsent_bytes:
            raise FrontGone("does not take its answers")
        try:
            while self._unsent:
                del self._unsent[: self._sock.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise FrontGone(str(error)) from None
        self.unheard.clear()

    def close(self) -> None:
        """Close the socket. Operations that were not performed are dropped."""
        self.tasks.clear()
        self._sock.close()
