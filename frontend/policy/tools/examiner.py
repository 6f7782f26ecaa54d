"""Asking the policy examiner (workers/examiner.py) over its channel: compile once, then one rule after the other.

For programs of the command line, which may wait: every wait has a deadline, and an examiner that is gone is a sentence.
"""

import socket
from collections.abc import Mapping, Sequence
from typing import Any

from frontend.policy.engine import PolicyRefused
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_POLICY_FRAME
from ipc.messages.checking import MAX_VALUE_FRAME, Evaluate, Evaluated, Examine, Examined, FromExaminer
from ipc.protocols.checking import FROM_EXAMINER

COMPILE_SECONDS = 60.0
"""The start of the examiner and the probes are part of it: ten, of at most a second of processor time each."""
VALUE_SECONDS = 60.0
"""Above the examiner's own deadline for one rule."""

_LOST = "the evaluator died while it compiled this policy"


class ExaminerLost(Exception):
    """The examiner is gone or does not answer; the text says when."""


class ExaminerClient:
    """The front's end."""

    def __init__(self, sock: socket.socket) -> None:
        union: Any = FromExaminer
        self._sock = sock
        self._channel: BlockingChannel[Examined | Evaluated] = BlockingChannel(
            sock, union, table=FROM_EXAMINER, cap_in=MAX_VALUE_FRAME, cap_out=MAX_POLICY_FRAME
        )

    def compile(
        self, modules: Mapping[str, str], data: str, rules: Sequence[str], *, seconds: float = COMPILE_SECONDS
    ) -> None:
        """Compile and probe, as a gateway would. Raises PolicyRefused."""
        try:
            answer = self._asked(Examine(dict(modules), data, tuple(rules)), seconds)
        except TimeoutError:
            raise PolicyRefused((f"it did not compile within {seconds:g} s",)) from None
        except ExaminerLost:
            raise PolicyRefused((_LOST,)) from None
        assert isinstance(answer, Examined)
        if answer.problems is not None:
            raise PolicyRefused(tuple(answer.problems.split("\n")))

    def value(self, rule: str, document: dict[str, Any]) -> Evaluated:
        """Evaluate one rule over an input. Raises ExaminerLost."""
        try:
            answer = self._asked(Evaluate(rule, document), VALUE_SECONDS)
        except TimeoutError:
            raise ExaminerLost(f"no answer about {rule} within {VALUE_SECONDS:g} s") from None
        assert isinstance(answer, Evaluated)
        return answer

    def _asked(self, message: Examine | Evaluate, seconds: float) -> Examined | Evaluated:
        self._sock.settimeout(seconds)
        try:
            self._channel.send(message)
            answer = self._channel.receive()
        except (ChannelClosed, FrameError, ProtocolError, ConnectionError) as error:
            raise ExaminerLost(f"the evaluator is gone: {type(error).__name__}") from None
        if isinstance(message, Examine) is not isinstance(answer, Examined):
            raise ExaminerLost("the evaluator answered another question")
        return answer
