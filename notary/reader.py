"""The reader process: `python -m notary.reader --channel-fd N --parent PID PLACE`, started by the supervisor.

Answers one question of one front about the whole ledger, and ends. Holds a connection that can't write and no key, and
stands behind everything else that wants the processor: calls do not wait for it. Ends with an exit code of
ipc/process/exits.py; the supervisor kills it at its deadline, and it ends by itself when its front does not listen any
more.
"""

import argparse
import os
import socket
import time
from contextlib import ExitStack
from pathlib import Path

from setproctitle import setproctitle

from contract.audit import ChainReport
from ipc.channel.blocking import BlockingChannel, ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.limits import MAX_READER_FRAME
from ipc.messages.reading import ChainVerified, FrontToReader, NotRead, VerifyChain, Walking
from ipc.process.exits import Exit
from ipc.process.logs import LogWriter, log, write_lines
from ipc.process.parent import die_with_parent, leave_signals_to_parent, refuse_core_dumps
from ipc.process.process_speed import leave
from ipc.process.stderr import is_read_by_person
from ipc.protocols.reader import FRONT_TO_READER
from ipc.walls.confining import WallRefused, enter
from ipc.walls.given import Given
from notary.database import OpenTransaction
from notary.reading.pace import Pace
from notary.reading.source import NotReadable, Source, add_source, opened, source_in
from notary.reading.whole import WholeWalk
from notary.walls import reader_walls

TELL_SECONDS = 1.0
"""Between two messages that tell how far a walk is; the end of the front is noticed as often."""
NICE = 19
"""Behind every process that serves calls, workers (nice 15) too, where there is not enough processor for all."""

Channel = BlockingChannel[VerifyChain]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="notary.reader", allow_abbrev=False)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    add_source(parser)
    parser.add_argument("--walls", type=Given.parse, default=Given())
    arguments = parser.parse_args()
    die_with_parent(arguments.parent)
    leave_signals_to_parent()
    # SECURITY: what agents asked, and whom they are, passes through here.
    refuse_core_dumps()
    setproctitle("gateway: reader")
    os.nice(NICE)
    write_lines(LogWriter(lambda: {"process": "reader"}, human=is_read_by_person()))
    os.set_inheritable(arguments.channel_fd, False)
    leave(run(socket.socket(fileno=arguments.channel_fd), source_in(arguments), arguments.walls))


def run(sock: socket.socket, source: Source, walls: Given | None = None, *, tell_seconds: float = TELL_SECONDS) -> Exit:
    """Answer the front at the other end, behind walls of this kind; return why it ended. `tell_seconds`: between two
    words of how far the walk is."""
    channel: Channel = BlockingChannel(
        sock, FrontToReader, table=FRONT_TO_READER, cap_in=MAX_READER_FRAME, cap_out=MAX_READER_FRAME
    )
    try:
        try:
            with ExitStack() as stack:
                # Behind walls a file can be opened, and no connection be made: one to a PostgreSQL is there before.
                early = None if source.file is not None else _tried(stack, source)
                if walls is not None:
                    _enter(source.file, walls)
                channel.receive()  # the one question there is
                channel.send(Walking(0))
                answer = _answer(channel, _tried(stack, source) if early is None else early, tell_seconds)
        except NotReadable as error:
            answer = NotRead(str(error))
        channel.send(answer)
        return Exit.OK
    except (FrameError, ProtocolError) as error:
        log.error("the front broke the protocol", cause=str(error))
        return Exit.PROTOCOL
    except (ChannelClosed, OSError):
        return Exit.ORPHANED
    except WallRefused as error:
        log.error("the operating system refused a wall", cause=str(error))
        return Exit.SANDBOX
    except Exception:
        log.exception("the reader ended by an error")
        return Exit.FAILED


def _enter(file: Path | None, walls: Given) -> None:
    """Build the walls, once all is loaded. Raises WallRefused."""
    enter(reader_walls(file), walls)


def _tried(stack: ExitStack, source: Source) -> OpenTransaction | NotReadable:
    try:
        return stack.enter_context(opened(source))
    except NotReadable as error:
        return error


def _answer(channel: Channel, ledger: OpenTransaction | NotReadable, tell_seconds: float) -> ChainVerified | NotRead:
    if isinstance(ledger, NotReadable):
        return NotRead(str(ledger))
    return ChainVerified(_verify(ledger, channel, tell_seconds))


def _verify(connection: OpenTransaction, channel: Channel, tell_seconds: float) -> ChainReport:
    """Walk to the end. Raises OSError when the front is gone, and what `opened` makes NotReadable."""
    walk, pace, tell_at = WholeWalk(), Pace(connection), time.monotonic() + tell_seconds
    while True:
        # Events and the head that they end at must be those of one moment; a longer look would keep the log of the
        # database from being copied into its file.
        connection.execute("BEGIN")
        try:
            has_more = walk.step(connection)
        finally:
            connection.execute("ROLLBACK")
        if not has_more:
            return walk.report()
        if time.monotonic() >= tell_at:
            tell_at = time.monotonic() + tell_seconds
            channel.send(Walking(walk.chain.head.seq))
        pace.rest()


if __name__ == "__main__":
    main()
