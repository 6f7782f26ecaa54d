"""Child processes: started with exactly the descriptors they need, ended with deadlines, reaped in one place.

Guarantees that no child outlives the supervisor: each one ties itself to its parent (`ipc/process/parent.py`), the
supervisor adopts what its children leave behind, and `kill_everything` ends whatever is left. Only the main thread
starts processes, since PDEATHSIG follows the thread.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import trio

from ipc.process.exits import Exit
from ipc.process.parent import signals_kept_from_children
from supervisor.children.installation import Installation
from supervisor.logs import log
from supervisor.programs import INTERPRETER, LAUNCH, child_environment

Pair = tuple[socket.socket, socket.socket]
"""Both ends of a channel with a child, ours first."""


def _nothing() -> None:
    """No listener is set yet."""


class Child:
    """A child process. Its pid is valid until Children reaps it, so a signal never reaches another process."""

    def __init__(self, name: str, process: "subprocess.Popen[bytes] | None") -> None:
        self.name = name
        self.pid = process.pid if process else 0
        self.status: int | None = None
        """Exit code, or minus a signal; None while it lives."""
        self._born = time.monotonic()
        self._process = process
        self._ended = trio.Event()

    def note_end(self, status: int) -> None:
        """Called once, by the reaper."""
        self.status = status
        if self._process is not None:
            self._process.returncode = status
        self._ended.set()

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._born

    async def wait(self) -> int:
        """Wait for the end and return the status."""
        await self._ended.wait()
        assert self.status is not None
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; nothing happens when the process has ended."""
        if self.status is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.signal(signal.SIGKILL)


class Children:
    """Starts and reaps. `reap` must be called whenever SIGCHLD arrived."""

    def __init__(self, environ: Mapping[str, str], installed: Path = LAUNCH) -> None:
        self.on_replaced: Callable[[], None] = _nothing
        """Called whenever a program is not started because the installation has been replaced."""
        self._environ = child_environment(environ)
        self._installation = Installation(installed)
        self._alive: dict[int, Child] = {}

    def start(self, name: str, program: tuple[str, ...], option: str = "control-fd") -> tuple[Child, Pair | None]:
        """Make a channel and start a program with it. Return the process and both ends of the channel, the parent's
        first; None instead of the ends if no descriptor is free, and then the process counts as ended."""
        try:
            pair = socket.socketpair()
        except OSError as error:
            return not_started(name, error), None
        return self.spawn(name, program, pair[1], option), pair

    def spawn(self, name: str, program: tuple[str, ...], channel: socket.socket, option: str = "control-fd") -> Child:
        """Start `program --control-fd N --parent PID` with `channel` as descriptor N, and close our copy.

        It sees descriptors 0 (nothing), 1 and 2 (our standard error: standard output belongs to the ready line) and N.
        A program that can't be started counts as ended with Exit.FAILED, or with Exit.REPLACED where it would be of
        another installation than this process. Signals to the whole service do not end it.
        """
        if self._installation.is_replaced:
            channel.close()
            self.on_replaced()
            return _ended(name, Exit.REPLACED)
        arguments = (f"--{option}", str(channel.fileno()), "--parent", str(os.getpid()))
        try:
            with channel, signals_kept_from_children():
                process = subprocess.Popen(
                    [*INTERPRETER, *program, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=2,
                    pass_fds=(channel.fileno(),),
                    close_fds=True,
                    start_new_session=True,
                    cwd="/",
                    env=self._environ,
                )
        except OSError as error:
            return not_started(name, error)
        child = self._alive[process.pid] = Child(name, process)
        return child

    def is_of_gateway(self, pid: int) -> bool:
        """Whether this is the pid of this process, or of a child of it that lives."""
        return pid == os.getpid() or pid in self._alive

    def reap(self) -> None:
        """Collect every process that has ended, ours or inherited from a child that died."""
        while True:
            try:
                pid, raw = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._alive.pop(pid, None)
            if child is not None:
                child.note_end(os.waitstatus_to_exitcode(raw))


def not_started(name: str, error: OSError) -> Child:
    """A child that could not be started: it counts as ended with Exit.FAILED."""
    log.error(f"{name} could not be started", error=str(error))
    return _ended(name, Exit.FAILED)


def _ended(name: str, status: Exit) -> Child:
    child = Child(name, None)
    child.note_end(status)
    return child


def kill_everything(seconds: float = 5.0) -> None:
    """SIGKILL every child and every adopted grandchild until none is left. Blocks up to `seconds`; for the very end."""
    deadline = time.monotonic() + seconds
    if os.getpid() == 1:
        # The first process of a container: its end is the end of all others in it, whatever /proc shows or does not.
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
    while pids := _direct_children():
        for pid in pids:
            handle = os.pidfd_open(pid)
            try:
                os.kill(pid, signal.SIGKILL)
                waiting = select.poll()
                waiting.register(handle, select.POLLIN)
                waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
            finally:
                os.close(handle)
            os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            log.error("processes that can't be killed are left behind", pids=pids)
            return


def _direct_children() -> list[int]:
    pids: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile has none
            pids += [int(pid) for pid in (thread / "children").read_text().split()]
    return pids
