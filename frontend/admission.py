"""Admission: what is refused before any cryptography is spent on it.

Owns the draining flag and the count of calls in flight, nothing else. Synchronous, so that no call slips between a
look and a count.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from frontend.errors import GateError


class Admission:
    """Counts what is in flight and refuses what would be too much."""

    def __init__(self, max_in_flight: int) -> None:
        self._ceiling = max_in_flight
        self._in_flight = 0
        self._idle = trio.Event()
        self._idle.set()
        self.is_draining = False
        self._is_closed = False

    @property
    def in_flight(self) -> int:
        """Calls and approved executions between admission and answer."""
        return self._in_flight

    def drain(self) -> bool:
        """Refuse new work from now on. True when that was so already (irreversible in a process' lifetime)."""
        was, self.is_draining = self.is_draining, True
        return was

    def close(self) -> None:
        """Refuse operators too: the process leaves, and what began now would be cut."""
        self.is_draining = self._is_closed = True

    def refuse_when_draining(self) -> None:
        """Raises GateError draining."""
        if self.is_draining:
            raise GateError("draining")

    @contextmanager
    def enter(self, *, while_draining: bool = False) -> Iterator[None]:
        """Hold a place for one call. Raises GateError draining or overloaded.

        `while_draining` is for operators: admin endpoints stay operational (interface specification, "Gate lifecycle").
        """
        if self._is_closed or not while_draining:
            self.refuse_when_draining()
        if self._in_flight >= self._ceiling:
            raise GateError("overloaded")
        self._in_flight += 1
        if self._in_flight == 1:
            self._idle = trio.Event()
        try:
            yield
        finally:
            self._in_flight -= 1
            if self._in_flight == 0:
                self._idle.set()

    async def wait_idle(self) -> None:
        """Until nothing is in flight. The caller brings the deadline."""
        while self._in_flight:
            await self._idle.wait()
