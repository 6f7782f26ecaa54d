"""Questions of a worker's calls for another token, and the answers of its front.

Guarantees that a question never waits for a front that does not read, that the one call which runs in the loop itself
waits no longer than it may, and that an answer which comes late is ignored. Keeps no value: each goes to its call.
"""

import select
import time
from collections import deque
from collections.abc import Callable, Mapping

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.messages.calling import Call, Drop, Retire, Secrets, TokenRefused
from workers.crew import Crew

MAX_ASKED = 64
"""Ids of calls that have asked which are kept: an answer may come after its call has ended."""


class Renewals:
    """The questions of one worker. All of it happens in the loop's own thread."""

    def __init__(
        self, front: BlockingChannel[Call | Secrets | Drop | Retire], crew: Crew | None,
        keep: Callable[[Call | Secrets | Drop | Retire], None],
    ) -> None:  # fmt: skip
        """`keep` takes each message of the front that is read here."""
        self._front = front
        self._crew = crew
        self._keep = keep
        self._asked: deque[TokenRefused] = deque(maxlen=MAX_ASKED)
        self._waiting: TokenRefused | None = None
        self._value: str | None = None
        self._poll = select.poll()
        self._poll.register(front.fileno(), select.POLLIN)
        self.fault: FrameError | ProtocolError | None = None
        """A mistake of the front during a call: the loop raises it after it has sent the result of the call."""

    def ask(self, question: TokenRefused) -> None:
        """Ask for a call of the crew."""
        if not self._is_sent(question):
            self._settle(question, None)

    def wait(self, call_id: str, secret: str, seconds: float) -> str | None:
        """Return another value for the call that runs in this thread, or None without one. Raises nothing."""
        question = TokenRefused(call_id, secret)
        deadline = time.monotonic() + seconds
        self._waiting, self._value = question, None
        try:
            if self._is_sent(question):
                self._read_until(deadline)
            return self._value
        except (ChannelClosed, OSError):
            return None  # the loop finds it, once the call has ended
        except (FrameError, ProtocolError) as error:
            self.fault = error
            return None
        finally:
            self._waiting, self._value = None, None

    def take(self, call_id: str, values: Mapping[str, str]) -> bool:
        """Take secrets for a call that has asked; none: it gets no other. False: that call has not asked."""
        for question in self._asked:
            if question.call_id == call_id:
                self._settle(question, values.get(question.secret))
                return True
        return False

    def _is_sent(self, question: TokenRefused) -> bool:
        self._asked.append(question)
        try:
            return self._front.offer(question)
        except OSError:
            return False  # the front is gone

    def _settle(self, question: TokenRefused, value: str | None) -> None:
        if question is self._waiting:
            self._waiting, self._value = None, value
        elif self._crew is not None:
            self._crew.give_token(question.call_id, value)

    def _read_until(self, deadline: float) -> None:
        while self._waiting is not None:
            if (message := self._front.pending()) is not None:
                self._keep(message)
                continue
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if self._poll.poll(1000 * left):
                self._front.fill()
