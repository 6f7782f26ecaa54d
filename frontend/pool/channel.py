"""One worker as the front sees it: greeted once, then one call at a time, every byte of it untrusted.

Guarantees that a Result is accepted only while its own call is under way, whole, plausible and alone. Any other
message, and a result that comes too late, ends in WorkerLost and a channel that is never reusable again.
"""

import select
import socket
from collections.abc import Callable

import trio

from ipc.blocking import ChannelClosed, FrameCut
from ipc.framing import FrameError, encode_frame
from ipc.limits import MAX_CALL_FRAME, MAX_RESULT_FRAME
from ipc.messages import (
    FAILED_OUTCOMES,
    AttachWorker,
    Call,
    GrantKeys,
    Result,
    Retire,
    Welcome,
    WorkerReady,
    WorkerToFront,
)
from ipc.nonblocking import TrioChannel
from ipc.sessions import WORKER_TO_FRONT, ProtocolError

GREETING_SECONDS = 10.0
"""From attachment to WorkerReady."""
GRACE_SECONDS = 2.0
"""Beyond the call's own deadline, which the worker's clock enforces."""

_OUTCOMES = frozenset({"success", *FAILED_OUTCOMES})
_VERIFICATIONS = frozenset(
    {"verified", "verification_failed", "unverifiable_declared", "provider_failed_before_verification", "skipped"}
)

_FAULTS = (ChannelClosed, FrameError, ProtocolError, OSError, trio.ClosedResourceError)


class WorkerLost(Exception):
    """The worker died, broke the protocol or passed its deadline. The text is ours, never the worker's bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class WorkerChannel(TrioChannel[WorkerToFront]):
    """Channel to one worker. Takes the socket over. Used by one task at a time: its pool sees to that.

    A worker knows the grants' keys as they were when it was last spoken to. Where they have changed since, the next
    call brings them along, in front of it: a worker need not be replaced for it, and none ever lacks a key.
    """

    def __init__(self, attach: AttachWorker, sock: socket.socket, grant_jwks: Callable[[], str]) -> None:
        """`grant_jwks`: what verifies grants that are signed by now (JWKS as JSON text)."""
        super().__init__(
            sock,
            WorkerToFront,
            table=WORKER_TO_FRONT,
            start="starting",
            cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CALL_FRAME,
        )
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._is_leaving = False
        self._grant_jwks = grant_jwks
        self._told_jwks = ""
        self.attached = attach
        self.lost: str | None = None
        """Why this worker may not be used again, once that is so."""
        self.calls = 0
        """Calls that were sent to it."""
        self.idle_since = 0.0
        """Trio clock; kept by the pool."""

    @property
    def worker_id(self) -> str:
        """As in AttachWorker."""
        return self.attached.worker_id

    @property
    def is_starting(self) -> bool:
        """True until it has been greeted."""
        return self._session.state == "starting" and self.lost is None

    @property
    def is_leaving(self) -> bool:
        """True once it was retired or said that it retires."""
        return self._is_leaving

    @property
    def is_reusable(self) -> bool:
        """True when the last call, if any, ended cleanly and no unrequested byte has come since."""
        return (
            self.lost is None
            and self._session.state == "idle"
            and not self._is_leaving
            and self._decoder.is_empty
            and not self._poll.poll(0)
        )  # fmt: skip

    async def greet(self) -> None:
        """Await WorkerReady, send Welcome. Raises WorkerLost."""
        attached = self.attached
        with trio.move_on_after(GREETING_SECONDS):
            try:
                first = await self.receive()
                if first != WorkerReady(attached.worker_id, attached.pid, attached.profile):
                    raise self._lose("not the worker that was announced")
                self._told_jwks = self._grant_jwks()
                await self.send(Welcome(self._told_jwks))
            except _FAULTS as error:
                raise self._lose(_fault(error)) from error
            return
        raise self._lose("not ready in time")

    async def call(self, call: Call) -> Result:
        """Send one call and wait for its result, at most GRACE_SECONDS beyond its deadline.

        Raises WorkerLost; FrameError when the call is too large to be sent, which leaves the worker untouched.
        """
        frame = encode_frame(call, MAX_CALL_FRAME)
        jwks = self._grant_jwks()
        if jwks != self._told_jwks:
            frame = self._frame(GrantKeys(jwks)) + frame
            self._told_jwks = jwks
        self._sending.accept(call)
        self.calls += 1
        with trio.CancelScope(deadline=trio.current_time() + call.deadline_seconds + GRACE_SECONDS):
            try:
                await self._write(frame)
                result = await self.receive()
            except _FAULTS as error:
                raise self._lose(_fault(error)) from error
            assert isinstance(result, Result), "the session table lets nothing else come now"
            if result.call_id != call.call_id or not self._decoder.is_empty or not _is_plausible(result):
                raise self._lose("a result that cannot be this call's")
            self._is_leaving = result.retiring
            return result
        raise self._lose("no result in time")

    def retire(self) -> bool:
        """Tell an idle worker to leave; False when it does not take the message. Nothing is sent afterwards."""
        self._is_leaving = True
        frame = self._frame(Retire())
        try:
            return self._plain.send(frame) == len(frame)
        except OSError:
            return False

    def close(self) -> None:
        """Close the socket; the channel is not reusable afterwards."""
        self.lost = self.lost or "closed"
        super().close()

    def _lose(self, reason: str) -> WorkerLost:
        self.lost = reason
        return WorkerLost(reason)


def _fault(error: Exception) -> str:
    # The exception's own text may quote the worker: it stays in the traceback and out of evidence.
    if isinstance(error, ChannelClosed | FrameCut | OSError | trio.ClosedResourceError):
        return "channel closed"
    return "protocol broken"


def _is_plausible(result: Result) -> bool:
    return (
        result.outcome in _OUTCOMES
        and result.verification.outcome in _VERIFICATIONS
        and (result.output is not None or result.outcome != "success")
        and result.duration_us >= 0
        and result.io_calls >= 0
        and (result.fuel_consumed is None or result.fuel_consumed >= 0)
    )
