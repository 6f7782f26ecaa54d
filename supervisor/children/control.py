"""One control channel per child: messages go out in order from a bounded queue, messages come in one by one.

`post` never waits, so a decision and its messages are one step. Descriptors given to `post` belong to this module from
then on. A child that does not read, floods or breaks the protocol loses its channel, and with it its life.
"""

import os
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import trio

from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError, Table
from ipc.limits import MAX_CONTROL_FRAME
from ipc.messages.message import Message
from supervisor.children.children import Child, Pair
from supervisor.logs import log

M = TypeVar("M", bound=Message)

MAX_QUEUED = 1024
SEND_SECONDS = 10.0
"""A child that does not take a message for this long is stuck."""
CLOSING_SECONDS = 10.0
"""How long a child may take to exit once it has closed its channel."""
AFTER_END_SECONDS = 1.0
"""How long the channel of a child that has ended may stay open."""

_Item = tuple[Message, tuple[int, ...]]


class Control(Generic[M]):
    """Both directions of a socket pair. `child_end` is the child's; the code that starts the child closes it."""

    def __init__(self, union: Any, table: Table, pair: Pair) -> None:
        ours, self.child_end = pair
        # SECURITY: no descriptors are read from a child; the kernel drops any that it sends.
        self._channel: TrioChannel[M] = TrioChannel(
            ours, union, table=table, cap_in=MAX_CONTROL_FRAME, cap_out=MAX_CONTROL_FRAME
        )
        self._queue, self._queued = trio.open_memory_channel[_Item](MAX_QUEUED)
        self._broken = trio.Event()
        self._fault = ""
        self.was_closed = False
        """The child closed the channel, as one does that leaves."""

    def post(self, message: Message, fds: tuple[int, ...] = ()) -> None:
        """Queue one message with descriptors that this call takes over. On a channel that broke it goes nowhere."""
        try:
            self._queue.send_nowait((message, fds))
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            _close(fds)
            if isinstance(error, trio.WouldBlock):
                self._break("does not take its messages")

    @property
    def queued(self) -> int:
        """Messages that the child has not taken."""
        return self._queue.statistics().current_buffer_used

    async def serve(self, answer: Callable[[M], None]) -> str:
        """Send posted messages and hand every received one to `answer`, until the channel ends; return why it ended."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send)
            nursery.start_soon(self._receive, answer)
            await self._broken.wait()
            nursery.cancel_scope.cancel()
        return self._fault

    async def serve_until_end(
        self, child: Child, answer: Callable[[M], None], *, closing_seconds: float = CLOSING_SECONDS
    ) -> None:
        """Serve until the child has ended. A child that closed its channel gets `closing_seconds` to exit, others
        none."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._follow_end, child)
                fault = await self.serve(answer)
                nursery.cancel_scope.cancel()
            with trio.move_on_after(closing_seconds if self.was_closed else 0):
                await child.wait()
            if child.status is None:
                log.error(f"{child.name} is killed: it {fault}", pid=child.pid)
        finally:
            child.kill()
            self.close()
        await child.wait()

    async def _follow_end(self, child: Child) -> None:
        """Read the last messages of a child. Its channel ends when the child does, unless a descendant holds the
        other end; that is not waited for."""
        await child.wait()
        await trio.sleep(AFTER_END_SECONDS)
        self._break("left its channel to another process")

    def close(self) -> None:
        """Close the socket and every descriptor that is still queued."""
        self._queue.close()
        while True:
            try:
                _close(self._queued.receive_nowait()[1])
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._queued.close()
        self._channel.close()
        self.child_end.close()

    def _break(self, fault: str) -> None:
        if not self._broken.is_set():
            self._fault = fault
            self._broken.set()

    def _break_as_closed(self) -> None:
        # Both directions notice: what the second one finds is the same close.
        self.was_closed = self.was_closed or not self._broken.is_set()
        self._break("closed its channel and did not leave")

    async def _send(self) -> None:
        async for message, fds in self._queued:
            try:
                with trio.fail_after(SEND_SECONDS):
                    await self._channel.send(message, fds)
            except OSError:
                self._break_as_closed()
                return
            except (FrameError, ProtocolError, trio.TooSlowError) as error:
                self._break(f"could not be sent {type(message).__name__}: {str(error) or 'not read in time'}")
                return
            finally:
                _close(fds)

    async def _receive(self, answer: Callable[[M], None]) -> None:
        try:
            while True:
                answer(await self._channel.receive())
        except (ChannelClosed, OSError):
            # A child that exits with messages unread resets the connection: that is a close like any other.
            self._break_as_closed()
        except (FrameError, ProtocolError) as error:
            self._break(f"broke the protocol: {error}")


def _close(fds: tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
