"""Admission: what is refused before any cryptography is spent on it, and how places are shared among callers.

Owns the draining flag and the count of calls in flight, in all and by caller, nothing else. Synchronous, so that no
call slips between a look and a count.

Principals share the places, and their sessions what is theirs (frontend/limits/shares.py), so that no caller keeps
another from being served, however many calls it makes or how slowly it sends them.
"""

from collections.abc import Callable
from types import TracebackType

import trio

from frontend.errors import GateError
from frontend.limits.rates import TooMuch
from frontend.limits.shares import may_have_another

SESSION_SHARE = 2
PRINCIPAL_SHARE = 3
"""Places that one may hold for each that is free: a session alone 2/3 of all, the sessions of a principal 3/4."""


def _nobody(_: str) -> None:
    """Counts nothing."""


class Place:
    """One call's place among those in flight; `with` gives it back at its end."""

    __slots__ = ("_admission", "is_left", "owners")

    def __init__(self, admission: "Admission") -> None:
        self._admission = admission
        self.owners: tuple[str, ...] = ()
        self.is_left = False

    def __enter__(self) -> "Place":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._admission.release(self)

    def belongs_to(self, principal: str, session_id: str) -> None:
        """Say whose call it is, before anything is awaited for it. Raises TooMuch overloaded when they hold their part
        of the places already."""
        self._admission.share(self, (f"principal {principal}", f"session {session_id}"))

    def leave_unless_owned(self) -> None:
        """Give back the place of a refused call of an unknown caller before the refusal is written: a flood of
        such calls would hold places that count for no caller."""
        if not self.owners:
            self._admission.release(self)


class Admission:
    """Counts what is in flight and refuses what would be too much. `refused` hears why."""

    def __init__(self, max_in_flight: int, refused: Callable[[str], None] = _nobody) -> None:
        self._ceiling = max_in_flight
        self._refused = refused
        self._in_flight = 0
        self._held: dict[str, int] = {}
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
        """Refuse operators too: the process is exiting, and a call that began now would be cut."""
        self.is_draining = self._is_closed = True

    def refuse_when_draining(self) -> None:
        """Raises GateError draining."""
        if self.is_draining:
            raise GateError("draining")

    def enter(self, *, while_draining: bool = False) -> Place:
        """A place for one call, to be held by `with`. Raises GateError draining or overloaded.

        `while_draining` is for operators: admin endpoints stay operational (docs/contract.md, "Gate lifecycle").
        """
        if self.is_draining and (self._is_closed or not while_draining):
            self._refused("draining")
            raise GateError("draining")
        if self._in_flight >= self._ceiling:
            self._refused("ceiling")
            raise GateError("overloaded")
        self._in_flight += 1
        if self._in_flight == 1:
            self._idle = trio.Event()
        return Place(self)

    def share(self, place: Place, owners: tuple[str, str]) -> None:
        """See Place.belongs_to; `owners` are principal and session."""
        free = self._ceiling - self._in_flight + 1  # this call's own place included
        held = self._held
        by_principal, by_session = held.get(owners[0], 0), held.get(owners[1], 0)
        is_theirs = may_have_another(by_principal, PRINCIPAL_SHARE, free, self._ceiling)
        if not is_theirs or by_session >= SESSION_SHARE * free:
            self._refused("share")
            raise TooMuch("overloaded")
        place.owners = owners
        held[owners[0]], held[owners[1]] = by_principal + 1, by_session + 1

    def release(self, place: Place) -> None:
        """Give a place back; once."""
        if place.is_left:
            return
        place.is_left = True
        self._in_flight -= 1
        for owner in place.owners:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
        if self._in_flight == 0:
            self._idle.set()

    async def wait_idle(self) -> None:
        """Until nothing is in flight. The caller brings the deadline."""
        while self._in_flight:
            await self._idle.wait()
