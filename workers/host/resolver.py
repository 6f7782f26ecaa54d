"""Resolving a name with a deadline, in a thread that exists before the walls close.

The C library's resolver can't be interrupted; so one thread waits for it while the call keeps its own deadline.
Guarantees one lookup at a time and no thread but that one. A lookup that outlives its call makes the worker one to be
replaced (`is_stuck`).
"""

import socket
import threading
import time
from queue import Empty, SimpleQueue

from workers.host.meter import HostError

_STACK_BYTES = 512 * 1024


class Resolver:
    """One a worker. `start` before the walls close; `resolve` from the one thread that serves calls."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[tuple[int, str]] = SimpleQueue()
        self._answers: SimpleQueue[tuple[int, list[str] | None]] = SimpleQueue()
        self._asked = 0
        self._answered = 0

    @property
    def is_stuck(self) -> bool:
        """True while a lookup is under way whose caller has given up."""
        return self._asked != self._answered

    def start(self) -> None:
        """Start the thread. It never ends before the process does."""
        previous = threading.stack_size(_STACK_BYTES)
        try:
            threading.Thread(target=self._run, name="resolver", daemon=True).start()
        finally:
            threading.stack_size(previous)

    def resolve(self, host: str, seconds: float) -> list[str]:
        """Addresses of a name, in the order of the system's preference.

        Raises HostError unavailable when the name has none, timeout when the answer takes longer than `seconds`.
        """
        deadline = time.monotonic() + seconds
        self._asked += 1
        asked = self._asked
        self._questions.put((asked, host))
        while True:
            try:
                answered, addresses = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                raise HostError("timeout", "the host's name could not be resolved in time", retryable=True) from None
            self._answered = answered
            if answered == asked:
                break
        if not addresses:
            raise HostError("unavailable", "the host's name could not be resolved", retryable=True)
        return addresses

    def _run(self) -> None:
        while True:
            asked, host = self._questions.get()
            try:
                infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
                addresses = list(dict.fromkeys(str(entry[4][0]) for entry in infos))
            except (OSError, UnicodeError):
                addresses = None
            self._answers.put((asked, addresses))
