"""Admission: refuses requests before any cryptography, and shares places among callers.

Owns the count of this front's calls in flight, in all and by caller, and sees those of the other fronts
(frontend/limits/peers.py): ceiling, shares and draining are the whole gateway's. Synchronous, so that no call slips
between a look and a count.

Principals share the places, and sessions those of their principal (frontend/limits/shares.py), so that no caller keeps
another from being served, however many calls it makes or how slowly it sends them.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn

import trio

from frontend.errors import GateError
from frontend.limits.body_bytes import BodyBytes
from frontend.limits.free_space import FreeSpace
from frontend.limits.peers import Peers
from frontend.limits.rates import TooMuch
from frontend.limits.shares import may_have_another
from frontend.shared.memory import SharedMemory

SESSION_SHARE = 2
PRINCIPAL_SHARE = 3
"""Places that one may hold for each that is free: a session alone 2/3 of all, the sessions of a principal 3/4."""


def _nobody(_: str) -> None:
    """Counts nothing."""


class Place:
    """One call's place among those in flight; `with` gives it back at its end."""

    __slots__ = ("_admission", "body_bytes", "is_left", "owners", "since")

    def __init__(self, admission: "Admission") -> None:
        self._admission = admission
        self.owners: tuple[str, ...] = ()
        self.body_bytes = 0
        """Those that it is counted with."""
        self.is_left = False
        self.since = time.monotonic()

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

    def holds_body(self, size: int) -> None:
        """Count the body that the call is about to read until the call has its answer. Raises TooMuch overloaded when
        the front, or the call's principal, holds as many bytes as it may."""
        self._admission.hold_body(self, size)

    def has_body(self, size: int) -> None:
        """The body is here: one that came in chunks was counted as the largest that its action takes."""
        if size < self.body_bytes:
            self._admission.settle_body(self, size)

    def leave_unless_owned(self) -> None:
        """Give back the place of a refused call of an unknown caller before the refusal is written: a flood of
        such calls would hold places that count for no caller."""
        if not self.owners:
            self._admission.release(self)


class Admission:
    """Counts calls in flight and refuses those over a limit. `refused` is called with the reason; `memory` is shared
    with the other fronts, where there are any; `room` is that for evidence; `bodies` are those of this front's calls.
    """

    def __init__(
        self, max_in_flight: int, refused: Callable[[str], None] = _nobody, memory: SharedMemory | None = None,
        room: FreeSpace | None = None, bodies: BodyBytes | None = None,
    ) -> None:  # fmt: skip
        self._bodies = bodies or BodyBytes(max_in_flight)
        self.room = room or FreeSpace(0)
        self._ceiling = max_in_flight
        self._refused = refused
        self._peers = Peers(memory or SharedMemory.alone())
        self._in_flight = 0
        self._held: dict[str, int] = {}
        self._places: dict[Place, None] = {}
        """In the order in which they were given."""
        self._idle = trio.Event()
        self._idle.set()
        self._is_closed = False

    @property
    def in_flight(self) -> int:
        """Calls and approved executions of this front between admission and answer."""
        return self._in_flight

    @property
    def in_flight_everywhere(self) -> int:
        """Those of all fronts."""
        return self._in_flight + self._peers.in_flight_elsewhere()

    @property
    def is_draining(self) -> bool:
        """True if this front refuses new work; once one front drains, every front does."""
        return self._is_closed or self._peers.is_draining

    def drain(self) -> bool:
        """Refuse new work from now on, in all fronts. True when that was so already (irreversible in the gateway's
        lifetime)."""
        return self._peers.drain()

    def close(self) -> None:
        """Refuse operators too: the process is exiting, and a call that began now would be cut."""
        self._is_closed = True

    def refuse_new_leases(self) -> None:
        """Raises GateError draining or ledger_full."""
        if self.is_draining:
            raise GateError("draining")
        self.room.refuse_when_short()

    def enter(self, *, while_draining: bool = False) -> Place:
        """A place for one call, to be held by `with`. Raises GateError draining, ledger_full or overloaded.

        `while_draining` is for operators: admin endpoints stay operational (docs/contract.md, "Gate lifecycle").
        """
        # Counted first and looked at then: of two fronts at least one sees what the other does, so that no call begins
        # in one when the other has said that it drains and nothing is in flight, and none is beyond the ceiling.
        self._count(self._in_flight + 1)
        if self.is_draining and (self._is_closed or not while_draining):
            return self._refuse("draining", "draining")
        if self.room.is_short:
            return self._refuse("ledger_full", "ledger_full")
        if self.in_flight_everywhere > self._ceiling:
            return self._refuse("ceiling", "overloaded")
        if self._in_flight == 1:
            self._idle = trio.Event()
        place = Place(self)
        self._places[place] = None
        return place

    def _refuse(self, reason: str, code: str) -> NoReturn:
        self._count(self._in_flight - 1)
        self._refused(reason)
        raise GateError(code)

    def _count(self, in_flight: int) -> None:
        self._in_flight = in_flight
        self._peers.note_in_flight(in_flight)

    def share(self, place: Place, owners: tuple[str, str]) -> None:
        """See Place.belongs_to; `owners` are principal and session."""
        free = max(0, self._ceiling - self.in_flight_everywhere) + 1  # this call's own place included
        by_principal, by_session = map(self._held_by, owners)
        is_theirs = may_have_another(by_principal, PRINCIPAL_SHARE, free, self._ceiling)
        if not is_theirs or by_session >= SESSION_SHARE * free:
            self._refused("share")
            raise TooMuch("overloaded")
        place.owners = owners
        for owner in owners:
            self._held[owner] = self._held.get(owner, 0) + 1
            self._peers.note_place(owner, 1)

    def hold_body(self, place: Place, size: int) -> None:
        """See Place.holds_body."""
        if (reason := self._bodies.take(place.owners, size)) is not None:
            self._refused(reason)
            raise TooMuch("overloaded")
        place.body_bytes = size

    def settle_body(self, place: Place, size: int) -> None:
        """See Place.has_body."""
        self._bodies.settle(place.owners, place.body_bytes, size)
        place.body_bytes = size

    def _held_by(self, owner: str) -> int:
        return self._held.get(owner, 0) + self._peers.held_elsewhere(owner)

    def release(self, place: Place) -> None:
        """Give a place back; once."""
        if place.is_left:
            return
        place.is_left = True
        del self._places[place]
        self._count(self._in_flight - 1)
        if place.body_bytes:
            self._bodies.give_back(place.owners, place.body_bytes)
        for owner in place.owners:
            self._peers.note_place(owner, -1)
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
        if self._in_flight == 0:
            self._idle.set()

    def oldest_seconds(self) -> float:
        """For how long the oldest of this front's calls has been in flight; 0 without calls."""
        oldest = next(iter(self._places), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.since

    async def wait_idle(self) -> None:
        """Until nothing is in flight. The caller brings the deadline."""
        while self._in_flight:
            await self._idle.wait()
