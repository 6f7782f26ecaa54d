"""Long looks at the ledger: each in a reader process of its own, which the supervisor starts when it is asked.

Guarantees that a look has a deadline, that its process ends when its caller goes away, and that nothing that a call
waits for waits for it. The log says how far a long walk is, every few seconds, and how it ended.
"""

import socket
from collections.abc import Callable

import trio

from contract.audit import ChainReport
from frontend.deadlines import NotaryDeadlines
from frontend.limits.turns import Turns
from frontend.notary.errors import NotaryUnavailable
from frontend.notary.progress import LogWalk
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_READER_FRAME, READER_SECONDS
from ipc.messages.control import AttachReader, NeedReader
from ipc.messages.message import Message
from ipc.messages.reading import ChainVerified, NotRead, ReaderToFront, VerifyChain, Walking
from ipc.protocols.reader import READER_TO_FRONT
from ipc.texts.identifiers import new

PART = "reader"


class Readers:
    """Asks for readers and hears them, one at a time; of the callers that wait, the one charged least is next."""

    def __init__(
        self, post: Callable[[Message], None], seconds: float = READER_SECONDS,
        deadlines: NotaryDeadlines = NotaryDeadlines(),
    ) -> None:  # fmt: skip
        """`post` tells the supervisor. `seconds` is what one look may take."""
        self._post = post
        self._seconds = seconds
        self._start_seconds = deadlines.reader_seconds
        self._turns = Turns()
        self._wanted: str | None = None
        self._attached = trio.Event()
        self._sock: socket.socket | None = None

    def attach(self, message: AttachReader, sock: socket.socket) -> None:
        """Use the reader that the supervisor has started. If it came too late its channel is closed, and it ends."""
        if message.request_id != self._wanted or self._sock is not None:
            sock.close()
            return
        self._sock = sock
        self._attached.set()

    async def verify(self, asker: str) -> ChainReport:
        """Walk the whole chain, once no other walk is under way; it is charged to `asker`. Raises NotaryUnavailable."""
        turn, used = self._turns.enter((asker,)), 0.0
        try:
            with trio.move_on_after(self._seconds):
                await turn.has_come.wait()
            if not turn.has_come.is_set():
                raise NotaryUnavailable(f"other walks were under way for {self._seconds:g} s", PART)
            began = trio.current_time()
            try:
                return await self._walk()
            finally:
                used = trio.current_time() - began
        finally:
            self._turns.leave(turn, used)

    async def _walk(self) -> ChainReport:
        progress = LogWalk()
        with trio.move_on_after(self._seconds + self._start_seconds):
            report = await self._ask(VerifyChain(), progress)
            progress.end(report)
            return report
        raise NotaryUnavailable(f"no answer within {self._seconds:g} s", PART)

    async def _ask(self, question: VerifyChain, progress: LogWalk) -> ChainReport:
        channel: TrioChannel[Walking | ChainVerified | NotRead] = TrioChannel(
            await self._reader(), ReaderToFront, table=READER_TO_FRONT, cap_in=MAX_READER_FRAME,
            cap_out=MAX_READER_FRAME,
        )  # fmt: skip
        try:
            await channel.send(question)
            while not isinstance(answer := await channel.receive(), ChainVerified):
                if isinstance(answer, NotRead):
                    raise NotaryUnavailable(answer.reason, PART)
                progress.hear(answer.events)
            return answer.report
        except (ChannelClosed, OSError):
            raise NotaryUnavailable("the reader ended before its answer", PART) from None
        except (FrameError, ProtocolError) as error:
            raise NotaryUnavailable(f"the reader broke the protocol: {error}", PART) from None
        finally:
            channel.close()

    async def _reader(self) -> socket.socket:
        """The channel of a fresh one. Raises NotaryUnavailable."""
        self._wanted, self._attached = new("read_"), trio.Event()
        try:
            self._post(NeedReader(self._wanted))
            with trio.move_on_after(self._start_seconds):
                await self._attached.wait()
        except BaseException:
            if self._sock is not None:
                self._sock.close()
            raise
        finally:
            sock, self._sock, self._wanted = self._sock, None, None
        if sock is None:
            raise NotaryUnavailable(f"no reader was started within {self._start_seconds:g} s", PART)
        return sock
