"""Decides when the ledger's write-ahead log is copied into its file, and has the copier process do it.

Guarantees that no unit waits for the copier, and that the log stays bounded without it: the notary copies what the
copier left, kills a copier that does not answer, and without one copies the log itself in a commit.
"""

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from ipc.process.logs import log
from notary.backends.sqlite import SqliteDatabase as SqliteDatabase
from notary.database import Database

COPY: Final = b"c"
DONE: Final = b"d"
LOOK_SECONDS: Final = 0.1
"""Between two looks at how long the log is."""
PAUSE_SECONDS: Final = 1.0
"""Between two requests. A log that a reader needs stays long, and is not copied again at once."""
ANSWER_SECONDS: Final = 10.0
"""For one copy. After that the copier is killed."""


class CopierProcess(NamedTuple):
    """The copier as the notary knows it; `sock` does not block."""

    pid: int
    sock: socket.socket


def copies_of(database: Database, copier: CopierProcess | None) -> "WalCopies | None":
    """The copies of a database that is a file. None without a copier: a server's database has none."""
    return WalCopies(database, copier) if copier is not None and isinstance(database, SqliteDatabase) else None


class WalCopies:
    """Copies of one notary's log. `descriptor` is readable when the copier has answered or ended."""

    def __init__(
        self, database: SqliteDatabase, copier: CopierProcess, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._copier = copier
        self._monotonic = monotonic
        self._look_at = 0.0
        self._answer_by: float | None = None
        """None: nothing was asked."""
        self._was_idle = False
        """There was nothing else to do when the copy was asked for."""
        self._is_gone = self._is_reaped = False
        self.descriptor = copier.sock.fileno()
        database.leave_copying(is_left=True)
        self.ask(is_idle=False)

    def patience(self) -> float:
        """Seconds until the copier has to have answered."""
        return float("inf") if self._answer_by is None else max(0.0, self._answer_by - self._monotonic())

    def ask(self, *, is_idle: bool) -> None:
        """Have the log copied, unless that is under way. Without a copier the notary copies it when it is idle."""
        if self._is_gone:
            if is_idle:
                self._database.tend()
            return
        if self._answer_by is not None:
            return
        try:
            self._copier.sock.send(COPY)
        except OSError as error:
            self._give_up(str(error))
            return
        now = self._monotonic()
        self._answer_by, self._look_at, self._was_idle = now + ANSWER_SECONDS, now + PAUSE_SECONDS, is_idle

    def tend(self) -> None:
        """Ask for a copy of a log that is long; end a copier that is late."""
        now = self._monotonic()
        if self._is_gone:
            self._reap(os.WNOHANG)
        elif self._answer_by is not None and now >= self._answer_by:
            self._give_up(f"it has not answered within {ANSWER_SECONDS:g} s")
        elif now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            if self._database.is_copy_due:
                self.ask(is_idle=False)

    def hear(self) -> None:
        """The copier has answered or ended. Copy what was committed while it copied: after that the next unit begins
        the log anew."""
        try:
            word = self._copier.sock.recv(len(DONE) + 1)
        except BlockingIOError:
            return
        except OSError as error:
            self._give_up(str(error))
            return
        if word != DONE or self._answer_by is None:
            self._give_up("it has ended" if not word else "it said something else than that it is done")
            return
        self._answer_by = None
        if self._was_idle:
            self._database.tend()
        else:
            self._database.copy_wal()

    def close(self) -> None:
        """End the copier, so that the notary is the last to close the database: then no log is left."""
        if not self._is_gone:
            self._end()
        self._reap(0)

    def _give_up(self, cause: str) -> None:
        log.warning("the notary copies its write-ahead log itself until it is started again", cause=f"copier: {cause}")
        self._end()
        self._database.leave_copying(is_left=False)

    def _end(self) -> None:
        os.kill(self._copier.pid, signal.SIGKILL)  # its own child, which is not reaped yet
        self._copier.sock.close()
        self._is_gone, self._answer_by, self.descriptor = True, None, -1

    def _reap(self, options: int) -> None:
        if not self._is_reaped:
            self._is_reaped = os.waitpid(self._copier.pid, options)[0] != 0
