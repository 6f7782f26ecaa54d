"""One session of one client with a server of its own: requests out, answers back by their ids.

A server that ends, floods or does not answer in time ends its session; requests that wait for it then fail.
Sessions share no state, since each has a server of its own.
"""

from contextlib import aclosing
from typing import Final

import trio

from bridge.child import LineTooLong, ServerChild
from bridge.messages import (
    InvalidMessage,
    JsonRpcMessage,
    MessageId,
    as_line,
    cancelled_line,
    read_message,
    refusal_line,
)
from frontend.telemetry.logs import log

ANSWER_SECONDS: Final = 300.0
"""For one answer; the gateway's own bound for a call is the action's."""
IDLE_SECONDS: Final = 300.0
MAX_WAITING: Final = 32
"""Requests of one session that wait for their answers."""
MAX_UNASKED: Final = 1000
"""Messages that a server may send for each answer."""


class SessionEnded(Exception):
    """The server is gone, and its session with it."""


class NotAccepted(Exception):
    """The session can't take this request. The text says why."""


class _Pending:
    """A request without its answer. `line` None at the end: there will be none."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.line: bytes | None = None


class BridgeSession:
    """`run` once, in a task of its own; it returns when the session has ended."""

    def __init__(self, number: int, child: ServerChild, *, answer_seconds: float, idle_seconds: float) -> None:
        self.number = number
        """How the log names it: its id is the client's alone."""
        self._child = child
        self._answer_seconds = answer_seconds
        self._idle_seconds = idle_seconds
        self._pending: dict[MessageId, _Pending] = {}
        self._last_used = trio.current_time()
        self._unasked = 0
        self._end = trio.CancelScope()
        self._reason = "the server ended"
        self._has_answered = False

    async def run(self) -> None:
        """Read what the server writes until the session ends, then end the server."""
        try:
            with self._end:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._child.drain_errors)
                    nursery.start_soon(self._end_when_idle)
                    await self._read()
                    nursery.cancel_scope.cancel()
        finally:
            for pending in self._pending.values():
                pending.ended.set()
            self._pending.clear()
            code = await self._child.end()
            said = {} if self._has_answered else {"said": self._child.said.decode(errors="replace")}
            log.info("session ended", session=self.number, reason=self._reason, exit=code, **said)

    @property
    def idle_seconds(self) -> float:
        """Since its last message; 0 while an answer is awaited, and once it is ending."""
        is_idle = not self._pending and not self._end.cancel_called
        return trio.current_time() - self._last_used if is_idle else 0.0

    def end(self, reason: str) -> None:
        """End the session; `run` returns once the server has ended."""
        if not self._end.cancel_called:
            self._reason = reason
            self._end.cancel()

    async def ask(self, identifier: MessageId, body: bytes) -> bytes:
        """Send a request and return its answer. Raises SessionEnded, NotAccepted, and trio.TooSlowError where none came
        in time; that ends the session."""
        if self._end.cancel_called:
            raise SessionEnded
        if identifier in self._pending:
            raise NotAccepted("a request with this id is under way")
        if len(self._pending) >= MAX_WAITING:
            raise NotAccepted(f"{MAX_WAITING} requests of this session are under way")
        pending = self._pending[identifier] = _Pending()
        try:
            with trio.fail_after(self._answer_seconds):
                await self._send(as_line(body))
                await pending.ended.wait()
        except trio.TooSlowError:
            await self._give_up(identifier)
            raise
        finally:
            self._pending.pop(identifier, None)
            self._last_used = trio.current_time()
        if pending.line is None:
            raise SessionEnded
        return pending.line

    async def tell(self, body: bytes) -> None:
        """Send a message that has no answer. Raises SessionEnded, and trio.TooSlowError; that ends the session if the
        server has a part of the message."""
        self._last_used = trio.current_time()
        with trio.fail_after(self._answer_seconds):
            await self._send(as_line(body))

    async def _send(self, line: bytes) -> None:
        try:
            await self._child.send(line)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise SessionEnded from None
        finally:
            if self._child.is_cut:
                self.end("a message was cut on its way to the server")

    async def _give_up(self, identifier: MessageId) -> None:
        with trio.move_on_after(1), trio.CancelScope(shield=True):
            await self._send(cancelled_line(identifier))
        self.end("no answer in time")

    async def _read(self) -> None:
        try:
            async with aclosing(self._child.lines()) as lines:
                async for line in lines:
                    await self._take(line, read_message(line))
        except InvalidMessage:
            self._reason = "the server wrote a line that is no message"
        except LineTooLong:
            self._reason = "the server wrote a line that is too long"
        except (trio.BrokenResourceError, trio.ClosedResourceError, SessionEnded):
            pass

    async def _take(self, line: bytes, message: JsonRpcMessage) -> None:
        if message.is_answer and message.id is not None and (pending := self._pending.get(message.id)) is not None:
            self._has_answered = True
            self._unasked = 0
            pending.line = line
            pending.ended.set()
            return
        self._unasked += 1
        if self._unasked > MAX_UNASKED:
            raise InvalidMessage
        if message.is_request and message.id is not None and message.method is not None:
            with trio.move_on_after(self._answer_seconds):
                await self._send(refusal_line(message.id, message.method))

    async def _end_when_idle(self) -> None:
        while True:
            left = self._last_used + self._idle_seconds - trio.current_time()
            if left <= 0 and not self._pending:
                break
            await trio.sleep(max(left, self._idle_seconds / 10))
        self.end("idle")
