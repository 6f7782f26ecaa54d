"""One connection from its first byte to its close: requests in order, one answer each, every phase with its deadline.

The deadline between two requests is the server's, which ends whichever connection idles too long: a scope for each wait
would cost a request a third of what this layer costs it.
One task, no nursery. While a handler runs nothing is read, so a client that leaves never cancels what it started.
Guarantees an answer with a JSON body for each refusal here; bytes that can't be framed safely end the connection.
"""

import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import trio

from frontend.errors import GateError
from frontend.http.answers import INTERNAL_ERROR, Answer, encode_answer, error_answer, traced
from frontend.http.bodies import StreamedBody
from frontend.http.heads import RequestHead, head_size, parse_head
from frontend.http.peercred import PeerCredentials
from frontend.http.request_turns import RequestTurns
from frontend.http.requests import CompleteBody, Request
from frontend.http.send_budget import NoRoom, SendBudget, seconds_for
from frontend.http.traffic import NullTraffic, Traffic
from frontend.http.wire import Interrupted, TooLate, Wire
from frontend.telemetry.logs import begin_trace, log, trace_now
from ipc.settings import LimitSettings

Respond = Callable[[Request], Awaitable[Answer]]

LINGER_SECONDS = 1.0
"""How long a connection that we close swallows what its client still sends."""


class ListenerContext(NamedTuple):
    """State that all connections of one listening socket share."""

    kind: str
    respond: Respond
    limits: LimitSettings
    unsent: SendBudget
    turns: RequestTurns
    traffic: Traffic = NullTraffic()


class Connection:
    """Serves one accepted socket. `run` ends when the socket is closed."""

    def __init__(self, sock: socket.socket, endpoint: ListenerContext, peer: PeerCredentials | None) -> None:
        self._wire = Wire(sock)
        self._endpoint = endpoint
        self._peer = peer
        self._is_waiting = False
        self._is_last = False
        self._is_new = True
        self._is_spared = False
        self.idle_since = trio.current_time()
        """Trio clock; meaningful while `is_idle`."""

    @property
    def uid(self) -> int | None:
        """The user id of the process that connected; None on TCP."""
        return None if self._peer is None else self._peer.uid

    @property
    def is_idle(self) -> bool:
        """True while no byte of a next request has been seen and `finish` has not been called."""
        return self._is_waiting and not self._is_last

    def finish(self, *, spares_new: bool = False) -> None:
        """Close at once when idle, otherwise with the answer that is under way. With `spares_new` a connection that has
        brought no request yet may bring one."""
        self._is_last = True
        self._is_spared = spares_new and self._is_new
        if self._is_waiting and not self._is_spared:
            self._wire.interrupt()

    async def run(self) -> None:
        """Serve until either side ends it. Raises nothing but Cancelled."""
        at_once = False
        try:
            while (head := await self._next_head()) is not None:
                if not await self._serve(head):
                    await self._wire.linger(LINGER_SECONDS)
                    break
        except GateError as error:
            await self._refuse(error)
        except TooLate:
            at_once = True
        except OSError:
            pass
        finally:
            self._wire.close(at_once=at_once)

    async def _next_head(self) -> RequestHead | None:
        """The next request's head; None when there will be none. Raises OSError, and GateError for bytes that are no
        request."""
        buffer = self._wire.buffer
        if not buffer:
            await self._wait_idle()
            if not buffer:
                return None
        else:
            # Pipelined requests must not starve other connections.
            await trio.lowlevel.checkpoint()
        deadline, searched = 0.0, 0
        while not (size := head_size(buffer, searched)):
            searched = len(buffer)
            deadline = deadline or trio.current_time() + self._endpoint.limits.header_timeout_seconds
            try:
                if not await self._wire.read_before(deadline):
                    return None
            except TooLate:
                raise GateError("request_timeout") from None
        await self._endpoint.turns.begin((self._endpoint.kind, self.uid))
        self._is_new = self._is_spared = False
        head = bytes(memoryview(buffer)[:size])
        del buffer[:size]
        return parse_head(head)

    async def _wait_idle(self) -> None:
        """Until bytes come, or the end of the stream, or `finish`: the buffer is empty then. Raises OSError."""
        if not self._is_last or self._is_spared:
            self.idle_since = trio.current_time()
            self._is_waiting = True
            try:
                await self._wire.wait_and_read()
                return
            except Interrupted:  # by finish
                pass
            finally:
                self._is_waiting = False
        # A request that was sent in this very moment is served, as the last one.
        self._wire.take_what_is_there()

    async def _serve(self, head: RequestHead) -> bool:
        """Answer one request; False when the connection has to close. Raises OSError, TooLate."""
        buffer = self._wire.buffer
        streamed: StreamedBody | None = None
        if head.is_chunked or head.length > len(buffer):
            streamed = StreamedBody(self._wire, head, self._endpoint.limits.body_timeout_seconds)
            body: StreamedBody | CompleteBody = streamed
        else:
            body = CompleteBody(bytes(memoryview(buffer)[: head.length]))
            del buffer[: head.length]
        later: list[Callable[[], None]] = []
        request = Request(
            head.method, head.path, head.query, head.headers,
            peer=self._peer, listener=self._endpoint.kind, body=body, later=later,
        )  # fmt: skip
        try:
            answer = await self._answer(request)
            stays = head.keeps_alive and not self._is_last
            if streamed is not None:
                stays = stays and (streamed.is_whole or streamed.may_be_skipped)
                streamed.abandon()
            data = self._encoded(answer, without_body=head.method == "HEAD", close=not stays)
            del answer, request, body  # what waits for a slow client is kept once
            await self._send(data, later)
        finally:
            _do_all(later)
        if stays and streamed is not None and not streamed.is_whole:
            return await streamed.skip()
        return stays

    async def _answer(self, request: Request) -> Answer:
        try:
            return await self._endpoint.respond(request)
        except GateError as error:
            self._endpoint.traffic.answered_itself(error.status)
            return traced(error_answer(error), trace_now())
        except Exception:
            log.exception("a handler failed", method=request.method, path=request.path)
        except BaseExceptionGroup as group:
            cancelled, rest = group.split(trio.Cancelled)
            log.error("a handler failed", method=request.method, path=request.path, exc_info=rest or group)
            if cancelled is not None:
                raise cancelled from None
        self._endpoint.traffic.answered_itself(INTERNAL_ERROR.status)
        return traced(INTERNAL_ERROR, trace_now())

    def _encoded(self, answer: Answer, *, without_body: bool, close: bool) -> bytes:
        try:
            return encode_answer(answer, without_body=without_body, close=close)
        except (ValueError, KeyError):
            log.exception("an answer cannot be written", status=answer.status)
            return encode_answer(traced(INTERNAL_ERROR, trace_now()), without_body=without_body, close=close)

    async def _send(self, data: bytes, later: list[Callable[[], None]]) -> None:
        """`later` is done once the socket has what it takes now. Raises OSError, and TooLate for a client that does not
        take its answer while there is time or room for it."""
        sent = self._wire.send_now(data)
        _do_all(later)
        if sent == len(data):
            return
        endpoint = self._endpoint
        try:
            with endpoint.unsent.kept((endpoint.kind, self.uid), len(data)):
                seconds = seconds_for(len(data), endpoint.limits.send_timeout_seconds)
                await self._wire.send(memoryview(data)[sent:], seconds)
        except (NoRoom, TooLate):
            endpoint.traffic.cut(endpoint.kind)
            raise TooLate from None

    async def _refuse(self, error: GateError) -> None:
        """Answer bytes that are no request, then close: the start of the next request is unknown."""
        begin_trace()
        self._endpoint.traffic.answered_itself(error.status)
        try:
            answer = traced(error_answer(error), trace_now())
            await self._send(self._encoded(answer, without_body=False, close=True), [])
            await self._wire.linger(LINGER_SECONDS)
        except (OSError, TooLate):
            return


def _do_all(acts: list[Callable[[], None]]) -> None:
    while acts:
        acts.pop(0)()
