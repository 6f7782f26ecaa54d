"""The policy process: `python -m workers.rego.main --channel-fd N --parent PID`.

Holds an active policy and at most one candidate, answers one question after the other, in order. A candidate is
compiled, checked and probed before it counts as compiled; the active policy stays in force until UsePolicy. An
evaluation that passes its deadline or takes too much memory ends the process, whatever the front does. Opens nothing,
sends nothing elsewhere.
"""

import argparse
import os
import socket
import sys
from typing import assert_never

import setproctitle

from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_POLICY_FRAME, MAX_VERDICT_FRAME
from ipc.messages.deciding import Ask, FrontToPolicy, LoadPolicy, PolicyCompiled, UsePolicy, Verdict
from ipc.messages.pinging import Ping, Pong
from ipc.process.exits import Exit
from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.process_speed import leave
from ipc.protocols.policy import FRONT_TO_POLICY
from ipc.walls.confining import WallRefused
from ipc.walls.given import Given
from workers.log import SAYS_DETAILS, write_line
from workers.rego.candidate import candidate
from workers.rego.deadline import Deadline, be_ended_by_overtime
from workers.rego.evaluator import CompiledPolicy, EvaluationError, PolicyError
from workers.rego.memory import MemoryBound
from workers.rego.values import NotAValue
from workers.sandbox.policy import enter

_MAX_ERROR = 4000

Channel = BlockingChannel[FrontToPolicy]


class PolicyServer:
    """Answers the messages of one front."""

    def __init__(self, channel: Channel, memory: MemoryBound, title: str = "") -> None:
        """`title` is what ps shows from the first message on; before, this may be a spare. `memory` is started."""
        self._channel = channel
        self._memory = memory
        self._title = title
        self._active: CompiledPolicy | None = None
        self._candidate: tuple[str, CompiledPolicy] | None = None
        self._deadline = Deadline()

    def serve(self) -> Exit:
        """Answer until the channel closes. Returns why it ended."""
        try:
            first = self._channel.receive()
            if self._title:
                setproctitle.setproctitle(self._title)
            self._answer(first)
            while True:
                self._answer(self._channel.receive())
        except (FrameError, ProtocolError) as error:
            write_line("error", "the front broke the protocol", process="policy", reason=str(error))
            return Exit.PROTOCOL
        except (ChannelClosed, ConnectionError):
            return Exit.ORPHANED

    def _answer(self, message: FrontToPolicy) -> None:
        match message:
            case Ask():
                verdict = self._verdict(message)
                self._channel.send(verdict)
                if SAYS_DETAILS:
                    write_line(
                        "debug", "a question was answered", process=self._title.removeprefix("gateway: "),
                        trace_id=message.trace_id, error=verdict.error,
                    )  # fmt: skip
            case LoadPolicy():
                self._channel.send(self._compiled(message))
            case UsePolicy():
                self._use(message.load_id)
            case Ping():
                self._channel.send(Pong())
            case _:
                assert_never(message)

    def _verdict(self, ask: Ask) -> Verdict:
        if self._active is None:
            raise ProtocolError("Ask without an active policy")
        try:
            with self._memory, self._deadline:
                document = self._active.evaluate(ask.input)
        except (EvaluationError, NotAValue) as error:
            return Verdict(ask.question_id, None, str(error)[:_MAX_ERROR])
        # A frame over the cap would end the process; a document that large is no decision.
        if len(document) * 4 > MAX_VERDICT_FRAME:
            return Verdict(ask.question_id, None, f"the decision document has {len(document)} characters")
        return Verdict(ask.question_id, document)

    def _compiled(self, load: LoadPolicy) -> PolicyCompiled:
        self._candidate = None
        try:
            with self._memory:
                compiled = candidate(load.modules, load.data, self._deadline)
        except PolicyError as error:
            return PolicyCompiled(load.load_id, "\n".join(error.problems)[:_MAX_ERROR])
        self._candidate = (load.load_id, compiled)
        reads = compiled.reads
        unknown = reads.unknown and reads.unknown[:_MAX_ERROR]
        return PolicyCompiled(load.load_id, None, reads.fields, unknown)

    def _use(self, load_id: str) -> None:
        if self._candidate is None or self._candidate[0] != load_id:
            raise ProtocolError(f"UsePolicy of {load_id}, which is not compiled")
        self._active, self._candidate = self._candidate[1], None


def main(arguments: list[str] | None = None) -> int:
    """Run the policy process; returns its exit code."""
    parser = argparse.ArgumentParser(prog="workers.rego.main")
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--number", type=int, default=1, help="shown in the process title")
    parser.add_argument("--walls", type=Given.parse, default=Given(), help="what this machine gives for them")
    parser.add_argument("--spare", action="store_true", help="it waits for another one's end, and its title says so")
    options = parser.parse_args(arguments)
    die_with_parent(options.parent)
    leave_signals_to_parent()
    refuse_core_dumps()
    title = f"gateway: policy {options.number}"
    setproctitle.setproctitle(title.replace("policy", "spare policy") if options.spare else title)
    # Rego's print() writes to standard output, which belongs to the gateway's one line of JSON.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    be_ended_by_overtime()
    with socket.socket(fileno=options.channel_fd) as sock:
        sock.setblocking(True)
        os.set_inheritable(sock.fileno(), False)
        channel: Channel = BlockingChannel(
            sock, FrontToPolicy, table=FRONT_TO_POLICY,
            cap_in=MAX_POLICY_FRAME, cap_out=MAX_VERDICT_FRAME,
        )  # fmt: skip
        try:
            memory = MemoryBound()
            enter(options.walls, memory.start)
        except WallRefused as error:
            write_line("error", "the operating system refused a wall", process="policy", reason=str(error))
            return Exit.SANDBOX
        return PolicyServer(channel, memory, title).serve()


if __name__ == "__main__":
    leave(main())
