"""Processes that live for one command: connected by socket pairs, under one deadline, gone at the end.

They start like a gateway's children: the same isolated interpreter, a few environment variables, only the descriptors
that they need, and no signals of the terminal. Guarantees that none outlives the block that started it.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import IO

from ipc.process.exits import Exit
from supervisor.programs import INTERPRETER, child_environment
from supervisor.refusal import Refused

END_SECONDS = 5.0
"""How long the kernel may take to end a process that was killed."""


class Helpers(AbstractContextManager["Helpers"]):
    """Processes that one command has started. Leaving the block kills and reaps those that still live."""

    def __init__(self, environ: Mapping[str, str], seconds: float) -> None:
        """`seconds` is what everything together may take."""
        self._environ = child_environment(environ)
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._started: list[subprocess.Popen[bytes]] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS)

    @property
    def left(self) -> float:
        """The seconds that are left. Raises Refused at the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Refused(Exit.FAILED, f"this took more than {self._seconds:g} s; nothing was started.")
        return left

    def start(
        self, module: str, *arguments: str, fds: tuple[int, ...] = (), stdout: IO[bytes] | int = 2
    ) -> "subprocess.Popen[bytes]":
        """Start `module --parent PID …` with these descriptors. Raises Refused.

        Its standard output is ours only where `stdout` says so; otherwise it goes to our standard error.
        """
        try:
            process = subprocess.Popen(
                [*INTERPRETER, module, "--parent", str(os.getpid()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                pass_fds=fds,
                close_fds=True,
                start_new_session=True,
                cwd="/",
                env=self._environ,
            )
        except OSError as error:
            raise Refused(Exit.FAILED, f"{module} could not be started: {error.strerror}.") from None
        self._started.append(process)
        return process

    def wait(self, process: "subprocess.Popen[bytes]") -> int:
        """Wait for the end of one within the time that is left. Raises Refused when it takes longer."""
        try:
            return process.wait(self.left)
        except subprocess.TimeoutExpired:
            raise Refused(Exit.FAILED, f"this took more than {self._seconds:g} s; nothing was started.") from None
