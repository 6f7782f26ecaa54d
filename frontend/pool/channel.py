"""One worker as the front sees it: greeted once, then given plans, every byte of it untrusted.

That a plan may run the notary says, and how it ended, too: what is read here is the output. A Result is accepted only
for a call that was given and has not ended, whole and plausible; TokenRefused once, for a call that has that token;
anything else ends in WorkerLost and a channel that is never reusable again.
"""

import select
import socket
from collections.abc import Collection, Mapping

import trio

from frontend.deadlines import PoolDeadlines
from ipc.channel.blocking import ChannelClosed, FrameCut
from ipc.channel.framing import FrameError
from ipc.channel.nonblocking import TrioChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import AHEAD_BYTES, MAX_AHEAD, MAX_CALL_FRAME, MAX_RESULT_FRAME
from ipc.messages.calling import (
    FAILED_OUTCOMES,
    Call,
    Drop,
    Result,
    Retire,
    Secrets,
    TokenRefused,
    WorkerReady,
    WorkerToFront,
)
from ipc.messages.control import AttachWorker
from ipc.messages.message import Message
from ipc.protocols.worker import WORKER_TO_FRONT

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
    """Channel to one worker. Takes the socket over. Its pool sees to how many tasks use it at once."""

    def __init__(self, attach: AttachWorker, sock: socket.socket, deadlines: PoolDeadlines = PoolDeadlines()) -> None:
        super().__init__(
            sock,
            WorkerToFront,
            table=WORKER_TO_FRONT,
            cap_in=MAX_RESULT_FRAME,
            cap_out=MAX_CALL_FRAME,
        )
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_AHEAD * AHEAD_BYTES)
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._deadlines = deadlines
        self._is_leaving = False
        self.attached = attach
        self.lost: str | None = None
        """Why this worker may not be used again, once that is so."""
        self.calls = 0
        """Calls that were given to it."""
        self.users = 0
        """Tasks that hold it; kept by the pool."""
        self.is_shared = False
        """Its call allows others ahead."""
        self.action = ""
        """The action whose calls it runs beside each other; empty where it runs one at a time. Kept by the pool."""
        self.is_brief = False
        """All the calls that it has been given are expected to end in a moment."""
        self.is_killed = False
        """The supervisor was asked to end it."""
        self.is_slow = False
        """The call that it runs takes long: nothing is given to it beside that."""
        self._reading = trio.Lock()
        self._given_up: set[str] = set()
        self._waits: dict[str, trio.CancelScope] = {}
        """By call, the wait for its result: cancelled by the task that takes the result in."""
        self._given: dict[str, Result | None] = {}
        """Calls that were given and have not ended, in order -> what it has told."""
        self._tokens: dict[str, frozenset[str]] = {}
        """By call, the secrets whose tokens it may say were refused: it says so once."""
        self._refused: dict[str, str] = {}
        """By call, the secret whose token was refused, until its task takes it."""
        self._listening: dict[str, trio.CancelScope] = {}
        """By call, the wait for that: cancelled by the task that takes the message or the result in."""
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
    def is_abandoned(self) -> bool:
        """True when a call was given whose task has let go of it: no task waits for its result."""
        return len(self._given) > self.users

    def is_behind(self, call_id: str) -> bool:
        """True when this call waits for another one of the same worker."""
        return next(iter(self._given), call_id) != call_id

    def gives_up(self, call_id: str) -> bool:
        """No task wants the result of this call any more. True if that is so of each call that it was given."""
        self._given_up.add(call_id)
        self._wake(call_id)
        return self._given.keys() <= self._given_up

    @property
    def is_leaving(self) -> bool:
        """True once it was retired or said that it retires."""
        return self._is_leaving

    @property
    def is_clean(self) -> bool:
        """True when every call has ended as it should, as far as it has been read."""
        return (
            self.lost is None
            and self._session.state == "serving"
            and not self._given
            and not self._is_leaving
            and self._decoder.is_empty
        )  # fmt: skip

    @property
    def is_reusable(self) -> bool:
        """True when it is clean and no unrequested byte has come since."""
        return self.is_clean and not self._poll.poll(0)

    async def greet(self) -> None:
        """Await WorkerReady. Raises WorkerLost."""
        attached = self.attached
        with trio.move_on_after(self._deadlines.greeting_seconds):
            try:
                first = await self.receive()
                if first != WorkerReady(attached.worker_id, attached.pid, attached.profile):
                    raise self._lose("not the worker that was announced")
            except _FAULTS as error:
                raise self._lose(_fault(error)) from error
            return
        raise self._lose("not ready in time")

    async def give(self, call: Call) -> None:
        """Send a plan, to be run on the notary's word. Without a checkpoint where the socket takes it at once; not
        cancelled in the middle.

        Raises WorkerLost; FrameError when the plan is too large to be sent, which leaves the worker untouched.
        """
        rest = memoryview(self._frame(call))
        self.calls += 1
        self._given[call.call_id] = None
        try:
            rest = rest[self._send_now(rest, ()) :]
            if rest:  # a worker reads once it has its permit, or is refused one
                with trio.CancelScope(shield=True, deadline=trio.current_time() + self._deadlines.give_seconds):
                    while rest:
                        await trio.lowlevel.wait_writable(self._plain)
                        rest = rest[self._send_now(rest, ()) :]
        except _FAULTS as error:
            raise self._lose(_fault(error)) from error
        if rest:
            raise self._lose("does not take its plan")

    def give_secrets(self, call_id: str, values: Mapping[str, str]) -> None:
        """Send the secrets that the given plan needs. Never waits: a worker that does not read them is lost."""
        self._tell(Secrets(call_id, dict(values)))

    def expect_refusal(self, call_id: str, names: Collection[str]) -> None:
        """A call has these tokens. Its worker may ask once for another one in the place of one of them."""
        self._tokens[call_id] = frozenset(names)

    async def refused_token(self, call_id: str) -> str | None:
        """Read until the worker says that an upstream has refused a token of this call: the name of its secret. None:
        the call has ended, or is given up, or nothing more can be read. Raises WorkerLost for a broken protocol."""
        try:
            with trio.CancelScope() as self._listening[call_id]:
                async with self._reading:
                    while self.is_running(call_id) and call_id not in self._refused:
                        await self._readable()
                        self._take_in()
        except (FrameError, ProtocolError) as error:
            if not isinstance(error, FrameCut):
                raise self._lose(_fault(error)) from error
        except _FAULTS:
            pass  # the notary learns that the worker has ended
        finally:
            del self._listening[call_id]
        return self._refused.pop(call_id, None)

    def is_running(self, call_id: str) -> bool:
        """True for a call that was given, is wanted, and whose result has not been read."""
        return self._given.get(call_id, self) is None and call_id not in self._given_up

    def drop(self, call_id: str) -> None:
        """The plan that was given does not run here."""
        del self._given[call_id]
        self._forget(call_id)
        if self.lost is None:
            self._tell(Drop(call_id))

    def renounce(self, call_id: str) -> None:
        """Tell the worker that a call was given up: it must not wait for secrets, which do not come."""
        if self.lost is None:
            self._tell(Drop(call_id, is_given_up=True))

    def give_up(self, reason: str) -> None:
        """Never use this worker again."""
        self.lost = self.lost or reason

    async def result(self, call_id: str) -> Result:
        """The result of a call whose end the notary knows: it is here, or will be in a moment. Raises WorkerLost."""
        reason, is_sound = "no result in time", True
        try:
            if self._given[call_id] is None:
                self._take_in()
            if self._given[call_id] is None:
                await self._wait_for(call_id)
        except _FAULTS as error:
            reason, is_sound = _fault(error), self._is_end(error, call_id)
        result = self._given.pop(call_id)
        self._forget(call_id)
        if result is None or not is_sound:
            raise self._lose(reason)
        return result

    def _forget(self, call_id: str) -> None:
        self._given_up.discard(call_id)
        self._tokens.pop(call_id, None)
        self._refused.pop(call_id, None)
        self._wake(call_id)

    def _wake(self, call_id: str) -> None:
        """Wake the tasks that wait for messages of this call."""
        for waits in (self._waits, self._listening):
            if (wait := waits.get(call_id)) is not None:
                wait.cancel()

    def _is_end(self, error: Exception, call_id: str) -> bool:
        """True when this is how a worker ends that has kept to the protocol: after its results, or in another's."""
        if isinstance(error, FrameCut):
            return any(result is None for given, result in self._given.items() if given != call_id)
        return isinstance(error, ChannelClosed)

    async def _wait_for(self, call_id: str) -> None:
        try:
            with trio.move_on_after(self._deadlines.grace_seconds) as self._waits[call_id]:
                async with self._reading:
                    while self._given[call_id] is None:
                        await self._readable()
                        self._take_in()
        finally:
            del self._waits[call_id]

    async def outlast(self, call_id: str) -> None:
        """Read until the result of a call that was given up has come, or nothing can: a large one that is not read
        holds up the worker, and so calls beside it. Raises nothing."""
        try:
            async with self._reading:
                while self._given.get(call_id, self) is None:
                    await self._readable()
                    self._take_in()
        except (FrameError, ProtocolError) as error:
            if not isinstance(error, FrameCut):
                self._lose(_fault(error))
        except _FAULTS:
            return  # what that means for another call, its task finds

    def _take_in(self) -> None:
        """Messages that have come, of whichever call: several tasks may wait for theirs."""
        while (result := self.receive_now()) is not None:
            if isinstance(result, TokenRefused):
                self._take_refusal(result)
                continue
            if not isinstance(result, Result) or not _is_plausible(result):
                raise ProtocolError("a result that cannot be")
            if self._given.get(result.call_id, result) is not None:
                raise ProtocolError("the result of no call")
            self._given[result.call_id] = result
            self._is_leaving = self._is_leaving or result.retiring
            self._wake(result.call_id)

    def _take_refusal(self, said: TokenRefused) -> None:
        """SECURITY: a worker gets another token only for a call that runs there and has one, and once."""
        names = self._tokens.pop(said.call_id, frozenset())
        if said.secret not in names or self._given.get(said.call_id, said) is not None:
            raise ProtocolError("a refused token that cannot be")
        self._refused[said.call_id] = said.secret
        self._wake(said.call_id)

    def retire(self) -> bool:
        """Tell an idle worker to leave; False when it does not take the message. It is the last message."""
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

    def _tell(self, message: Message) -> None:
        try:
            frame = self._frame(message)
            if self._send_now(frame, ()) == len(frame):
                return
        except (FrameError, OSError):
            pass
        self._lose("does not read its messages")

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
        and all(one.after_us >= 0 and one.took_us >= 0 for one in result.host_times)
    )
