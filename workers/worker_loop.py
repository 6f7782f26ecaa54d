"""The loop of a worker: plans from its front, words from the notary, and results to both.

Guarantees that a plan runs on the notary's word alone and once, whatever is repeated; that the result goes to both
peers; and that nothing of a call but its result is kept once it has ended. An idle worker sleeps until the notary
speaks or its front hangs up: what the front has sent meanwhile is read then, so that one call wakes it once. Shared
calls run in threads (workers/crew.py), and this loop goes on; it alone speaks to the peers.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import msgspec

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.packets import PacketChannel
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_AHEAD
from ipc.messages.attesting import LookAtFile, NoPermit, NotaryToWorker, Permit, Seen
from ipc.messages.calling import Call, Drop, Result, Retire, Secrets, TokenRefused
from ipc.messages.message import Message
from ipc.process.exits import Exit
from workers.crew import SHARED, Crew, EndedCall
from workers.log import SAYS_DETAILS, write_failure, write_line
from workers.renewals import Renewals
from workers.runtime.call import Runner, broken_result, refused_result
from workers.sandbox.places import WalledPaths
from workers.verifiers.verify import look_again

MAX_PLANS = 2 * MAX_AHEAD
"""Plans that are kept: those that wait for a word, and as many that are about to be dropped."""
DROP_SECONDS = 30.0
"""A sound front learns of a refusal within ten seconds and drops the call, or has this worker killed."""
LOOK_SECONDS = 2.0
"""Between two looks whether what this worker may open is still there (workers/sandbox/places.py)."""
MAX_DROPPED = 64
"""Ids of dropped calls that are kept: a notary may speak of one late, or twice."""

FrontChannel = BlockingChannel[Call | Secrets | Drop | Retire]
NotaryChannel = PacketChannel[NotaryToWorker]


class StuckCall(Exception):
    """A shared call goes on beyond its deadline: this process must end."""


class BrokenCall(Exception):
    """A shared call has ended without a result: this process must end after its other calls."""


class WorkerLoop:
    """One worker at work. `serve` returns an exit code; raises what its channels raise."""

    def __init__(
        self, front: FrontChannel, notary: NotaryChannel, runner: Runner, recycle_after_calls: int, *,
        standing: WalledPaths | None = None, drop_seconds: float = DROP_SECONDS, process: str = "worker",
        crew: Crew | None = None,
    ) -> None:  # fmt: skip
        """`process` is what its lines call it. Without a crew a worker runs no shared calls."""
        self._front = front
        self._notary = notary
        self._runner = runner
        self._left = recycle_after_calls
        self._standing = standing or WalledPaths(None)
        self._drop_seconds = drop_seconds
        self._process = process
        self._crew = crew
        self._plans: dict[str, Call] = {}
        self._secrets: dict[str, Mapping[str, str]] = {}
        self._told: deque[Result] = deque(maxlen=MAX_AHEAD)
        """Results that are not known to be durable: a notary that died may have taken them along."""
        self._dropped: deque[str] = deque(maxlen=MAX_DROPPED)
        self._given_up: deque[str] = deque(maxlen=MAX_DROPPED)
        """Ids of those of them that are never given again."""
        self._is_retired = False
        self._renewals = Renewals(front, crew, self._keep)
        self._poll = select.poll()
        self._poll.register(notary.fileno(), select.POLLIN)
        self._poll.register(front.fileno(), 0)  # a hang-up is reported all the same
        self._renewal_poll = select.poll()
        """Used while a shared call waits for another token, because only the front can give it."""
        self._renewal_poll.register(notary.fileno(), select.POLLIN)
        self._renewal_poll.register(front.fileno(), select.POLLIN)
        self._front_poll = select.poll()
        self._front_poll.register(front.fileno(), select.POLLIN)
        self._crew_poll = select.poll()
        if crew is not None:
            for poll in (self._poll, self._renewal_poll, self._front_poll, self._crew_poll):
                poll.register(crew.fileno(), select.POLLIN)

    def wait_tied(self) -> None:
        """Until a notary knows this worker."""
        while self._notary.receive() is None:
            pass

    def serve(self) -> Exit:
        """Run what the notary names until the front retires this worker."""
        try:
            return self._serve()
        except StuckCall:
            return Exit.FAILED
        except BrokenCall:
            self._finish_shared()
            return Exit.FAILED
        except (ChannelClosed, FrameError, ProtocolError, OSError):
            self._finish_shared()
            raise

    def _serve(self) -> Exit:
        patience = LOOK_SECONDS if self._standing.is_watched else None
        looks_at = time.monotonic() + LOOK_SECONDS
        while True:
            ready = self._wait(self._next_poll(), patience)
            if not ready or time.monotonic() >= looks_at:
                looks_at = time.monotonic() + LOOK_SECONDS
                if self._standing.has_gone():
                    if not ready and not self._has_shared:
                        return Exit.RECYCLED
                    self._left = 0  # the next result says so, and the front gives it no more calls
                if self._runner.outside is not None:
                    self._runner.outside.kept.close_old()
            if self._notary.fileno() in ready:
                match self._said():
                    case Permit() as word:
                        self._answer(word)
                    case LookAtFile() as look:
                        self._notary.send(_seen(self._runner.files_dir, look))
                    case NoPermit() as refused:
                        self._wait_dropped(refused.call_id)
            elif ready.get(self._front.fileno()) == select.POLLIN:
                self._front.fill()
            elif self._front.fileno() in ready:
                self._finish_shared()
                return self._leave()

    def _next_poll(self) -> "select.poll":
        """The descriptors to wait for. If a call waits for the front's answer, messages of the front are kept first."""
        if self._crew is None or not self._crew.is_renewing:
            return self._poll
        while (message := self._front.pending()) is not None:
            self._keep(message)
        return self._renewal_poll

    def _wait(self, poll: "select.poll", seconds: float | None) -> dict[int, int]:
        """Wait for what `poll` knows, and tell of shared calls that have ended meanwhile. Raises StuckCall, and
        BrokenCall after it has told of all of them."""
        crew = self._crew
        patience = None if crew is None else crew.patience()
        waits = [left for left in (seconds, patience) if left is not None]
        ready = dict(poll.poll(1000 * min(waits) if waits else None))
        if crew is None:
            return ready
        broken = False
        while crew.fileno() in ready and (one := crew.take()) is not None:
            if isinstance(one, TokenRefused):
                self._renewals.ask(one)
            else:
                broken = self._note_shared_end(one) or broken
        if stuck := crew.stuck():
            trace_ids = [call.plan.trace_id for call in stuck]
            write_line("error", "calls do not end: their worker does", process=self._process, trace_ids=trace_ids)
            raise StuckCall
        if broken:
            raise BrokenCall
        return ready

    def _note_shared_end(self, one: EndedCall) -> bool:
        """A shared call has ended. True if it has no result."""
        if isinstance(one.ended, BaseException):
            write_failure("a call failed", one.ended, process=self._process, trace_id=one.call.plan.trace_id)
            return True
        self._note_end(one.call, one.ended, one.is_stuck)
        return False

    @property
    def _has_shared(self) -> bool:
        """True while shared calls run."""
        return self._crew is not None and self._crew.is_busy

    def _finish_shared(self) -> None:
        """Wait until each shared call has ended and send its result: it may have had effects. Raises StuckCall."""
        while self._has_shared:
            with suppress(BrokenCall):
                self._wait(self._crew_poll, None)

    def _said(self) -> Message | None:
        """The next message of the notary; None if it was taken back at the last moment, or is not complete."""
        try:
            return self._notary.receive(socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def _leave(self) -> Exit:
        """The front has hung up: it says why, or it is gone."""
        while not self._is_retired:
            self._hear()
        return Exit.RECYCLED

    def _answer(self, word: Permit) -> None:
        # SECURITY: nothing is kept of a call whose evidence is durable.
        for settled in [result for result in self._told if result.call_id in word.settled]:
            self._told.remove(settled)
        for result in self._told:
            if result.call_id == word.call_id:
                self._notary.send(result)
                return
        if self._crew is not None and self._crew.is_running(word.call_id):
            return  # a notary that follows repeats the word, and gets the result at the end
        call = self._taken(word.call_id)
        if call is None:
            self._tell(refused_result(word.call_id, "the front had given the call up before it began"))
            return
        secrets = self._secrets.pop(word.call_id, {})
        refusal = self._refusal(call)
        if refusal is not None:
            self._note_end(call, refused_result(call.call_id, refusal))
        elif self._crew is not None and call.plan.isolation == SHARED:
            self._crew.begin(call, word, secrets)
        else:
            result = self._runner.run(call, word, secrets, partial(self._renewals.wait, call.call_id))
            outside = self._runner.outside
            self._note_end(call, result, is_stuck=outside is not None and outside.resolver.is_stuck)
            if self._renewals.fault is not None:
                raise self._renewals.fault

    def _refusal(self, call: Call) -> str | None:
        if self._crew is not None:
            return self._crew.refusal(call.plan)
        return "this worker runs no shared calls" if call.plan.isolation == SHARED else None

    def _note_end(self, call: Call, result: Result, is_stuck: bool = False) -> None:
        """A call has ended. `is_stuck`: this worker must be replaced after it."""
        if SAYS_DETAILS:
            plan = call.plan
            write_line(
                "debug", "a plan was run", process=self._process, trace_id=plan.trace_id, action_id=plan.action_id,
                intent_id=call.call_id, outcome=result.outcome, duration_us=result.duration_us,
            )  # fmt: skip
        self._left -= 1
        if self._left <= 0 or is_stuck:
            self._is_retired = True
            result = msgspec.structs.replace(result, retiring=True)
        self._tell(result)

    def _taken(self, call_id: str) -> Call | None:
        """The plan of a call, with its secrets where it has some: both are on their way when the word comes. None: the
        front has given the call up."""
        while (call := self._plans.get(call_id)) is None or (call.plan.secrets and call_id not in self._secrets):
            if call_id in self._given_up:
                return None
            self._hear()
        return self._plans.pop(call_id)

    def _wait_dropped(self, call_id: str) -> None:
        """Read what the front has sent of a call that was refused, so that it takes up no room.

        Raises ProtocolError when the front does not drop the call within DROP_SECONDS.
        """
        deadline = time.monotonic() + self._drop_seconds
        while call_id not in self._dropped:
            if (message := self._front.pending()) is not None:
                self._keep(message)
                continue
            left = deadline - time.monotonic()  # whatever else the front sends meanwhile
            if left <= 0:
                raise ProtocolError("the front did not drop a call that was refused")
            if self._front.fileno() in self._wait(self._front_poll, left):
                self._front.fill()

    def _hear(self) -> None:
        """Take the next message of the front. Raises ChannelClosed when it is gone."""
        message = self._front.pending()
        while message is None and self._has_shared:
            if self._front.fileno() in self._wait(self._front_poll, None):
                self._front.fill()
            message = self._front.pending()
        self._keep(message or self._front.receive())

    def _keep(self, message: Call | Secrets | Drop | Retire) -> None:
        match message:
            case Call():
                if len(self._plans) >= MAX_PLANS:
                    raise ProtocolError("more plans than a worker keeps")
                self._plans[message.call_id] = _readable(message)
            case Secrets():
                if message.call_id in self._plans:
                    self._secrets[message.call_id] = message.values
                elif not self._renewals.take(message.call_id, message.values):
                    raise ProtocolError("secrets of no call")
            case Drop():
                self._plans.pop(message.call_id, None)
                self._secrets.pop(message.call_id, None)
                self._renewals.take(message.call_id, {})
                self._dropped.append(message.call_id)
                if message.is_given_up:
                    self._given_up.append(message.call_id)
            case Retire():
                self._is_retired = True

    def _tell(self, result: Result) -> None:
        """Send the result to both peers; the front may not read before the notary has answered it."""
        rest = memoryview(b"")
        with suppress(OSError):  # the front is gone; what happened is evidence all the same
            try:
                rest = self._front.begin(result)
            except FrameError:
                smaller = broken_result(result.call_id, result.observations)
                result = msgspec.structs.replace(smaller, retiring=result.retiring, may_have_run=result.may_have_run)
                rest = self._front.begin(result)
        self._told.append(result)
        self._notary.send(result)
        try:
            self._front.finish(rest)
        except OSError:
            self._front.close()  # in the middle of a message: nothing more can be said to it
            raise


def _readable(call: Call) -> Call:
    """The call, its plan decoded. Raises ProtocolError."""
    try:
        _ = call.plan
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    return call


def _seen(files_dir: str, look: LookAtFile) -> Seen:
    """Look below `files_dir`, without a provider."""
    deadline = time.monotonic() + look.seconds

    def pulse() -> None:
        if time.monotonic() >= deadline:
            raise TimeoutError

    return Seen(look.number, *look_again(look.verifier_kind, files_dir, look.file, pulse))
