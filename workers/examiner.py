"""The policy examiner: `python -m workers.examiner --channel-fd N --parent PID`, for `gateway policy test|explain`.

Compiles a policy as the policy process does, by the same code and with the same probes, and evaluates single rules of
it. Each evaluation runs in a process forked for it, with the deadline of the policy process: a rule that hangs or
crashes costs itself alone. Opens nothing, keeps nothing.
"""

import argparse
import ctypes
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

import msgspec
import setproctitle

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_POLICY_FRAME
from ipc.messages.checking import (
    MAX_VALUE_CHARACTERS,
    MAX_VALUE_FRAME,
    Evaluate,
    Evaluated,
    Examine,
    Examined,
    ToExaminer,
)
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, refuse_core_dumps
from ipc.protocols.checking import TO_EXAMINER
from workers.forking import Forked, fork, leave, settle
from workers.rego.candidate import candidate
from workers.rego.deadline import EVALUATION_SECONDS, OVERTIME, Deadline, be_ended_by_overtime
from workers.rego.evaluator import CompiledPolicy, EvaluationError, PolicyError
from workers.rego.values import NotAValue

GRACE_SECONDS = 30.0
"""Beyond the deadline, which the evaluating process holds itself in processor time: to start, to wait for a processor,
and to report."""
_STDOUT = 1
_CHUNK = 65536
_MAX_ERROR = 4000

_Channel = BlockingChannel[Examine | Evaluate]


class Examiner:
    """Answers one front program."""

    def __init__(self, channel: _Channel) -> None:
        self._channel = channel
        self._policy: CompiledPolicy | None = None

    def serve(self) -> Exit:
        """Answer until the channel closes. Returns why it ended."""
        try:
            while True:
                message = self._channel.receive()
                if isinstance(message, Examine):
                    self._channel.send(Examined(self._compile(message)))
                else:
                    self._channel.send(self._evaluate(message))
        except (FrameError, ProtocolError) as error:
            print(f"examiner: the front broke the protocol: {error}", file=sys.stderr)
            return Exit.PROTOCOL
        except (ChannelClosed, ConnectionError):
            return Exit.ORPHANED

    def _compile(self, message: Examine) -> str | None:
        try:
            self._policy = candidate(message.modules, message.data, Deadline(), message.rules)
        except PolicyError as error:
            self._policy = None
            return "\n".join(error.problems)[:_MAX_ERROR]
        return None

    def _evaluate(self, message: Evaluate) -> Evaluated:
        if self._policy is None:
            raise ProtocolError("Evaluate without a compiled policy")
        value_in, value_out = os.pipe2(os.O_CLOEXEC)
        printed_in, printed_out = os.pipe2(os.O_CLOEXEC)
        began = time.monotonic()
        child = fork()
        if child is None:
            _run(self._policy, message, value_out, printed_out)
        os.close(value_out)
        os.close(printed_out)
        value, printed = _collected(child, value_in, printed_in)
        status = child.reap()
        return _outcome(message.rule, status, value, printed, time.monotonic() - began)


def _run(policy: CompiledPolicy, message: Evaluate, value_out: int, printed_out: int) -> NoReturn:
    """The child."""
    try:
        settle({value_out, printed_out})
        os.dup2(printed_out, _STDOUT)
        be_ended_by_overtime()
        try:
            with Deadline():
                text = policy.value(message.input, message.rule)
            answer = ("undefined", "") if text is None else ("value", text)
        except (EvaluationError, NotAValue) as error:
            answer = ("error", str(error)[:_MAX_ERROR])
        # print() of Rego goes through the C library's own buffer.
        ctypes.CDLL(None).fflush(None)
        with open(value_out, "wb", closefd=False) as pipe:
            pipe.write(msgspec.json.encode(answer))
        leave(Exit.OK)
    except BaseException as error:
        leave(error)


def _collected(child: Forked, value_in: int, printed_in: int) -> tuple[bytes, bytes]:
    """The content of the two pipes until both ended; the child is killed when its time is over."""
    contents = {value_in: b"", printed_in: b""}
    waiting = select.poll()
    for descriptor in contents:
        waiting.register(descriptor, select.POLLIN)
    left, deadline = len(contents), time.monotonic() + EVALUATION_SECONDS + GRACE_SECONDS
    while left and (remaining := deadline - time.monotonic()) > 0:
        for descriptor, _ in waiting.poll(remaining * 1000):
            data = os.read(descriptor, _CHUNK)
            if not data:
                waiting.unregister(descriptor)
                left -= 1
            elif len(contents[descriptor]) <= 4 * MAX_VALUE_CHARACTERS:
                contents[descriptor] += data
    if left:
        child.kill()
    os.close(value_in)
    os.close(printed_in)
    return contents[value_in], contents[printed_in]


def _outcome(rule: str, status: int, value: bytes, printed: bytes, seconds: float) -> Evaluated:
    outcome, text = "crashed", f"the evaluator ended with {status}"
    if status == -OVERTIME or (status == -signal.SIGKILL and seconds >= EVALUATION_SECONDS):
        outcome, text = "timeout", f"no value within {EVALUATION_SECONDS:g} s"
    elif status == Exit.OK:
        outcome, text = _read(value)
    shown = printed.decode("utf-8", "replace")[:MAX_VALUE_CHARACTERS]
    return Evaluated(rule, outcome, text, shown, seconds)


def _read(value: bytes) -> tuple[str, str]:
    try:
        outcome, text = msgspec.json.decode(value, type=tuple[str, str])
    except msgspec.MsgspecError:
        return "error", f"the value has more than {MAX_VALUE_CHARACTERS} characters"
    if len(text) > MAX_VALUE_CHARACTERS:
        return "error", f"the value has {len(text)} characters"
    return outcome, text


def main(arguments: list[str] | None = None) -> int:
    """Run the examiner; returns its exit code."""
    parser = argparse.ArgumentParser(prog="workers.examiner", allow_abbrev=False)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    refuse_core_dumps()
    setproctitle.setproctitle("gateway: policy examiner")
    # print() of Rego while a policy is probed: standard output is for the outcome alone.
    os.dup2(sys.stderr.fileno(), _STDOUT)
    be_ended_by_overtime()
    with socket.socket(fileno=options.channel_fd) as sock:
        sock.setblocking(True)
        os.set_inheritable(sock.fileno(), False)
        union: Any = ToExaminer
        channel: _Channel = BlockingChannel(
            sock, union, table=TO_EXAMINER, cap_in=MAX_POLICY_FRAME, cap_out=MAX_VALUE_FRAME
        )
        return Examiner(channel).serve()


if __name__ == "__main__":
    leave(main())
