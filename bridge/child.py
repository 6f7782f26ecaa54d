"""One MCP server as a child process: messages are lines on its standard input and output.

Guarantees that the child has a process group of its own, that the whole group ends with `end`, and that the child ends
with the bridge. A line has a bound; standard error is read and dropped but for its end. The child has the bridge's
user and no capability (bridge/main.py).
"""

import os
import select
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Final

import trio

from ipc.process.parent import die_with_parent

MAX_LINE: Final = 8 * 1024 * 1024
"""Bytes of one message of a server."""
MAX_SAID: Final = 2048
"""Bytes of the end of standard error that are kept."""
PATIENCE_SECONDS: Final = 2.0
"""From the end of its input to SIGTERM, and from there to SIGKILL."""
_READ_BYTES: Final = 64 * 1024
_NOT_PASSED_ON: Final = ("GATEWAY_", "LISTEN_", "NOTIFY_", "WATCHDOG_")


class LineTooLong(Exception):
    """The server wrote more than MAX_LINE bytes without a line break."""


def environment_of(environ: Mapping[str, str]) -> dict[str, str]:
    """The bridge's environment without settings of a gateway and without systemd's descriptors."""
    return {name: value for name, value in environ.items() if not name.startswith(_NOT_PASSED_ON)}


def _taken_over(pipe: IO[bytes] | None) -> trio.lowlevel.FdStream:
    assert pipe is not None
    with pipe:
        return trio.lowlevel.FdStream(os.dup(pipe.fileno()))


class ServerChild:
    """A server that runs. Raises OSError where the command can't be started."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            start_new_session=True, env=environment_of(os.environ),
            # The bridge has one thread: trio starts none unless it is asked to.
            preexec_fn=partial(die_with_parent, os.getpid()),  # noqa: PLW1509
        )  # fmt: skip
        self._input = _taken_over(self._process.stdin)
        self._output = _taken_over(self._process.stdout)
        self._errors = _taken_over(self._process.stderr)
        # SECURITY: as long as the child is not reaped its group keeps its number, so that no other group is killed.
        self._pidfd = os.pidfd_open(self._process.pid)
        self._writing = trio.Lock()
        self.is_cut = False
        """A line was written in part, perhaps: then the server can't find the beginning of the next one."""
        self.said = b""
        """The end of its standard error."""

    @property
    def pid(self) -> int:
        """The process, and its group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process has ended by itself."""
        return bool(select.select([self._pidfd], [], [], 0)[0])

    async def send(self, line: bytes) -> None:
        """Write one line whole. Raises trio.BrokenResourceError or trio.ClosedResourceError when the child is gone, or
        an earlier line was cut by a cancellation."""
        async with self._writing:
            if self.is_cut:
                raise trio.BrokenResourceError("an earlier line was cut")
            try:
                await self._input.send_all(line)
            except BaseException:
                self.is_cut = True
                raise

    async def lines(self) -> AsyncGenerator[bytes]:
        """Each line that it writes, without its end. Raises LineTooLong."""
        buffer, searched = bytearray(), 0
        while data := await self._output.receive_some(_READ_BYTES):
            buffer += data
            while (end := buffer.find(b"\n", searched)) >= 0:
                line = bytes(memoryview(buffer)[:end])
                del buffer[: end + 1]
                searched = 0
                if line.strip():
                    yield line
            searched = len(buffer)
            if searched > MAX_LINE:
                raise LineTooLong

    async def drain_errors(self) -> None:
        """Read standard error to its end."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await self._errors.receive_some(_READ_BYTES):
                self.said = (self.said + data)[-MAX_SAID:]

    async def end(self) -> int | None:
        """End the group: close its input, then SIGTERM, then SIGKILL. Return the exit status as subprocess has it, None
        for a process that the kernel does not let go of."""
        with trio.CancelScope(shield=True):
            await self._input.aclose()
            has_ended = await self._has_ended() or await self._has_ended(signal.SIGTERM)
            has_ended = has_ended or await self._has_ended(signal.SIGKILL)
            self._signal(signal.SIGKILL)  # members of the group that outlive its leader
            os.close(self._pidfd)
            await self._output.aclose()
            with trio.move_on_after(PATIENCE_SECONDS):
                await self.drain_errors()  # the last words; a process that left the group could hold this end open
            await self._errors.aclose()
        return self._process.wait() if has_ended else None

    async def _has_ended(self, number: signal.Signals | None = None) -> bool:
        """Send this signal, and give it its time. True if the process has ended; it is not reaped yet."""
        if number is not None:
            self._signal(number)
        with trio.move_on_after(PATIENCE_SECONDS) as scope:
            await trio.lowlevel.wait_readable(self._pidfd)
        return not scope.cancelled_caught

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
