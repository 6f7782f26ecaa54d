"""Echo workers forked by one process that has imported what they need, as the template does in a gateway.

A fresh interpreter for every worker was most of what the tests of pools and of whole fronts cost. Each worker is still
a process of its own; it dies with the template. The template ends with the process of the tests, as soon as their end
of its socket is closed: PDEATHSIG would follow the thread that started it, which may end before other tests do.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from typing import NoReturn

from tests.support import echo_worker

STATUS_BYTES = 4
REQUEST_BYTES = 4096


class EchoProcess:
    """A forked worker, with as much of `subprocess.Popen` as tests ask of it."""

    def __init__(self, pid: int, pidfd: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._pidfd, self._status = pidfd, status
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        with self._lock:
            if self.returncode is None and self._has_ended(0):
                told = os.read(self._status, STATUS_BYTES)
                # Without a word: the template is dead, and all its workers with it.
                self.returncode = int.from_bytes(told, "big", signed=True) if told else -signal.SIGKILL
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it is there. Raises subprocess.TimeoutExpired."""
        self._has_ended(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("echo worker", timeout or 0)
        return code

    def _has_ended(self, seconds: float | None) -> bool:
        waiting = select.poll()  # not select.select: a test may have thousands of files open
        waiting.register(self._status, select.POLLIN)
        return bool(waiting.poll(None if seconds is None else seconds * 1000))

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            return

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._pidfd)
        os.close(self._status)


class EchoTemplate:
    """The tests' end of the process that forks."""

    def __init__(self) -> None:
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.support.echo_template", str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        atexit.register(self._end)

    def fork(self, channels: tuple[int, int], arguments: list[str]) -> EchoProcess:
        """A worker with these arguments, whose channels with front and notary are these descriptors."""
        ours, theirs = os.pipe()
        try:
            socket.send_fds(self._sock, [json.dumps(arguments).encode()], [*channels, theirs])
        finally:
            os.close(theirs)
        pid, (pidfd,) = socket.recv_fds(self._sock, STATUS_BYTES, 1, socket.MSG_CMSG_CLOEXEC)[:2]
        return EchoProcess(int.from_bytes(pid, "big"), pidfd, ours)

    def _end(self) -> None:
        self._sock.close()
        self._process.wait()


_TEMPLATES: list[EchoTemplate] = []


def echo_template() -> EchoTemplate:
    """The one of this test run, started when it is first wanted."""
    if not _TEMPLATES:
        _TEMPLATES.append(EchoTemplate())
    return _TEMPLATES[0]


class _Forking:
    """The process that forks."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._running: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, the channel for its exit code)

    def run(self) -> None:
        """Fork what is asked for and tell how it ended, until the tests are over."""
        while True:
            for ready in select.select([self._sock.fileno(), *self._running], [], [])[0]:
                if ready != self._sock.fileno():
                    self._tell_end(ready)
                elif not self._fork():
                    return

    def _fork(self) -> bool:
        asked, fds, *_ = socket.recv_fds(self._sock, REQUEST_BYTES, 3, socket.MSG_CMSG_CLOEXEC)
        if not asked:
            return False
        channel, attesting, status = fds
        pid = os.fork()
        if pid == 0:
            self._become_worker((channel, attesting), json.loads(asked))
        os.close(channel)
        os.close(attesting)
        pidfd = os.pidfd_open(pid)
        self._running[pidfd] = (pid, status)
        socket.send_fds(self._sock, [pid.to_bytes(STATUS_BYTES, "big")], [pidfd])
        return True

    def _become_worker(self, channels: tuple[int, int], arguments: list[str]) -> NoReturn:
        code = 1
        try:
            self._sock.close()
            for pidfd, (_, status) in self._running.items():
                os.close(pidfd)
                os.close(status)
            ends = ["--channel-fd", str(channels[0]), "--notary-fd", str(channels[1])]
            code = echo_worker.main([*arguments, *ends, "--parent", str(os.getppid())])
        except SystemExit as end:
            code = int(end.code or 0)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _tell_end(self, pidfd: int) -> None:
        pid, status = self._running.pop(pidfd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with suppress(BrokenPipeError):  # the EchoProcess that would read it is gone
            os.write(status, code.to_bytes(STATUS_BYTES, "big", signed=True))
        os.close(status)
        os.close(pidfd)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as to_tests:
        _Forking(to_tests).run()
