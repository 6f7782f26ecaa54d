"""The frame of a process of trio that serves the supervisor: its log, and the exit code of every end."""

from collections.abc import Awaitable, Callable

import trio

from frontend.telemetry.logs import configure_logs, log
from ipc.channel.blocking import ChannelClosed
from ipc.channel.framing import FrameError
from ipc.channel.protocol_states import ProtocolError
from ipc.process.exits import Exit


def run_supervised(process: str, serve: Callable[[], Awaitable[Exit]]) -> Exit:
    """Serve the supervisor until that ends; return why. Raises nothing that `serve` raises."""
    configure_logs(process)
    try:
        return trio.run(serve, strict_exception_groups=True)
    except* (ChannelClosed, BrokenPipeError, ConnectionResetError):
        code = Exit.ORPHANED
    except* (FrameError, ProtocolError) as group:
        log.error("the supervisor broke the protocol", cause=str(group.exceptions[0]))
        code = Exit.PROTOCOL
    except* Exception:
        log.exception(f"the {process} ended by an error")
        code = Exit.FAILED
    return code
