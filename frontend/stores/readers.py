"""Readers: questions to a SQLite file that need not wait for its writer, each in a thread of trio's pool.

For what lies off the hot path. Guarantees: connections that can't write, a bounded number of threads, and a deadline;
whoever gives up takes the question back, so that no thread goes on for nobody.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from frontend.stores.database import DatabaseGone, connect

Answer = TypeVar("Answer")

MAX_READERS = 4
READ_SECONDS = 10.0
_STEPS_BETWEEN_LOOKS = 20_000
"""Instructions of SQLite's machine, about a millisecond."""


class Readers:
    """Read-only connections to one file, opened when needed and kept for the next question."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._free: list[sqlite3.Connection] = []
        self._limiter = trio.CapacityLimiter(MAX_READERS)
        self._is_closed = False

    async def ask(self, question: Callable[[sqlite3.Connection], Answer], *, seconds: float = READ_SECONDS) -> Answer:
        """The answer of `question`, which runs in a thread; `math.inf` seconds means no deadline.

        Raises DatabaseGone for SQLite's errors and past the deadline. Cancelled or late, the question ends at its next
        SQL statement.
        """
        is_taken_back = threading.Event()
        with trio.CancelScope(deadline=trio.current_time() + seconds):
            try:
                return await trio.to_thread.run_sync(
                    self._answer, question, is_taken_back, limiter=self._limiter, abandon_on_cancel=True
                )
            finally:
                is_taken_back.set()
        raise DatabaseGone(f"{self._path}: no answer within {seconds:g} s")

    def close(self) -> None:
        """Release what is free now; what is in use is released by its thread."""
        self._is_closed = True
        while self._free:
            self._free.pop().close()

    def _answer(self, question: Callable[[sqlite3.Connection], Answer], is_taken_back: threading.Event) -> Answer:
        connection = None
        try:
            connection = self._open()
            connection.set_progress_handler(is_taken_back.is_set, _STEPS_BETWEEN_LOOKS)
            answer = question(connection)
        except sqlite3.Error as error:
            raise DatabaseGone(f"{self._path}: {error}") from error
        else:
            connection.set_progress_handler(None, 0)
            self._free.append(connection)
            connection = None
            return answer
        finally:
            if connection is not None:
                connection.close()
            if self._is_closed:
                self.close()

    def _open(self) -> sqlite3.Connection:
        with contextlib.suppress(IndexError):
            return self._free.pop()
        return connect(self._path, writes=False)
