"""Standard error without a wait: a log that is not read stops no process.

A line that standard error does not take at once is dropped and counted; the next line that goes out is preceded by one
that says how many were dropped, and since when. Sockets are asked not to wait by each write. Pipes and terminals are
opened anew (`own_stderr`), since O_NONBLOCK on the launcher's own description would reach the launcher and its other
programs. Where they can't be, a thread of the first process carries the lines. A regular file blocks as its disk does.
"""

import fcntl
import os
import socket
import stat
import struct
import termios
import threading
import time
from collections.abc import Callable
from typing import Final

TERMINAL: Final = "GATEWAY_LOG_TERMINAL"
"""Set for children whose lines a thread carries to a terminal: a person reads them."""
PIPE_BUF: Final = 4096
"""A line up to this length is written to a pipe whole or not at all, pipe(7)."""
PIPE_BYTES: Final = 65536
CARRY_SECONDS: Final = 1.0
"""For the last lines to be carried, when a process ends whose standard error a thread writes to."""

_STDERR: Final = 2
_NO_WAIT: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Stderr:
    """Writes lines and counts those that were dropped."""

    def __init__(self) -> None:
        self._begin()
        # A fork has dropped nothing yet, and finishes no line of its parent.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self.dropped = 0
        """Lines, since this process began."""
        self._untold = 0
        self._since = 0.0
        self._rest = b""
        self._lock = threading.RLock()
        self.look()

    def look(self) -> None:
        """Note the kind of file that standard error is: behind its walls a worker may not ask."""
        try:
            self._mode = os.fstat(_STDERR).st_mode
        except OSError:
            self._mode = 0

    def say(self, emit: Callable[[], bool], tell_dropped: Callable[[int, float], bool]) -> None:
        """Have `emit` write one line. When lines were dropped, `tell_dropped` first writes how many and since when
        (Unix seconds). Both say whether the line went out."""
        with self._lock:
            if self._untold and tell_dropped(self._untold, self._since):
                self._untold = 0
            if self._untold or not emit():
                self._since = self._since if self._untold else time.time()
                self._untold += 1
                self.dropped += 1

    def put(self, line: bytes) -> bool:
        """Write one line; False when it is dropped. The rest of a line that was begun goes out before the next one."""
        with self._lock:
            if self._rest:
                self._rest = self._rest[self._written(self._rest) :]
            if self._rest:
                return False
            sent = 0 if stat.S_ISFIFO(self._mode) and _would_be_cut(line) else self._written(line)
            self._rest = line[sent:] if sent else b""
            return sent > 0

    def _written(self, data: bytes) -> int:
        """Bytes that standard error took now. Raises nothing."""
        try:
            return _sent(data) if stat.S_ISSOCK(self._mode) else os.write(_STDERR, data)
        except OSError:
            return 0


stderr = Stderr()
"""The process's own."""


def _sent(data: bytes) -> int:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=_STDERR)
    try:
        return sock.send(data, _NO_WAIT)
    finally:
        sock.detach()


def _would_be_cut(line: bytes) -> bool:
    """A long line in a pipe that is filling: its second half would come after lines of other processes. Each page of
    the pipe is at least half full on the average, so twice what waits is the most that is taken."""
    if len(line) <= PIPE_BUF:
        return False
    try:
        (waiting,) = struct.unpack("i", fcntl.ioctl(_STDERR, termios.FIONREAD, b"\0" * 4))
    except OSError:
        return False
    return bool(waiting > 0 and 2 * waiting + len(line) + 2 * PIPE_BUF > PIPE_BYTES)


def is_read_by_person() -> bool:
    """Standard error leads to a terminal."""
    return os.isatty(_STDERR) or os.environ.get(TERMINAL) == "1"


# ------------------------------------------------------------------------------------ a description of our own


def own_stderr() -> None:
    """Make standard error of this process, and of all that it starts, one that never waits. Call it once, in the first
    process, before the first line."""
    try:
        mode = os.fstat(_STDERR).st_mode
    except OSError:
        return
    if not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        return
    try:
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        own = os.open(f"/proc/self/fd/{_STDERR}", flags)
    except OSError:
        own = _carry()
    os.dup2(own, _STDERR)
    os.close(own)
    stderr.look()


class _Carrier(threading.Thread):
    """Carries lines from this process's own pipe to the launcher's standard error; only this thread waits there."""

    def __init__(self, source: int, target: int) -> None:
        super().__init__(name="stderr", daemon=True)
        self._source = source
        self._target = target

    def run(self) -> None:
        while data := os.read(self._source, PIPE_BYTES):
            try:
                while data:
                    data = data[os.write(self._target, data) :]
            except OSError:
                continue  # its reader is gone


_carriers: list[_Carrier] = []


def _carry() -> int:
    """A pipe whose lines a thread carries; returns the end to write to."""
    if os.isatty(_STDERR):
        os.environ[TERMINAL] = "1"
    source, own = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(own, False)
    carrier = _Carrier(source, fcntl.fcntl(_STDERR, fcntl.F_DUPFD_CLOEXEC, 3))
    carrier.start()
    _carriers.append(carrier)
    return own


def let_go_of_stderr() -> None:
    """The end of this process: give its last lines a moment. Call it after the last line."""
    if _carriers:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, _STDERR)
        stderr.look()
        _carriers.pop().join(CARRY_SECONDS)
