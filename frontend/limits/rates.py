"""How much the gateway takes in a second: token buckets by class, shared by those who ask, and one for each session.

docs/contract.md, "Limits", and `limits.session_requests_per_second`. Buckets lie in the memory that all fronts share,
on the machine's monotonic clock: all fronts draw from the same bucket. Refusing is cheap, and not every refusal has an
event, or a flood would fill the ledger with its own refusals: the refusals of a session are counted in an event at
first, and then every TELL_SECONDS.
"""

import math
from collections.abc import Callable
from contextlib import suppress

from frontend.errors import GateError
from frontend.limits.bucket import SharedBucket
from frontend.limits.sessions import SessionTable
from frontend.shared.memory import MemoryLocked, SharedMemory
from ipc.channel import front_memory as at

PER_SECOND = {"lease": 50, "write": 20, "read": 100, "unidentified": 5, "scrape": 5}
"""Leases, operators' writes and reads, leases for users of this host who have no identity here, and metrics without a
credential; a class without a row is not limited here."""
TELL_SECONDS = 10.0


class TooMuch(GateError):
    """More than a caller may have now: refused before anything was decided about the request."""


def _nobody(_: str) -> None:
    """Counts nothing."""


class Rates:
    """Takes a token per request. `limited` is called with the class of each refused request."""

    def __init__(self, limited: Callable[[str], None] = _nobody, memory: SharedMemory | None = None) -> None:
        memory = memory or SharedMemory.alone()
        self._buckets = {}
        for index, (name, rate) in enumerate(PER_SECOND.items()):
            start = at.BUCKETS + index * at.BUCKET_BYTES
            cells = memory.part(start, at.BUCKET_BYTES)
            self._buckets[name] = SharedBucket(rate, rate, cells=cells, lock=memory.lock(start))
        self._limited = limited

    def take(self, name: str, holder: str) -> None:
        """One request of this class. `holder`: the user of this host or the operator who asks.

        Raises GateError rate_limit_exceeded when the holder's part of the bucket is empty, and MemoryLocked.
        """
        bucket = self._buckets.get(name)
        if bucket is not None and (seconds := bucket.take(holder)) is not None:
            self._limited(name)
            raise GateError("rate_limit_exceeded", retry_after=math.ceil(seconds))


class SessionRates:
    """A bucket for each session that has asked for something lately; one that is idle is full, and forgotten.

    SECURITY: keyed by the session of a lease whose signature and proof hold, so that a caller can
    neither fill the table with invented names nor empty another session's bucket.
    """

    def __init__(
        self, per_second: int, limited: Callable[[str], None] = _nobody, sessions: SessionTable | None = None
    ) -> None:  # fmt: skip
        self._per_second = per_second
        self._limited = limited
        self._sessions = sessions or SessionTable(SharedMemory.alone())

    def take(self, session_id: str) -> None:
        """One request of this session. Raises TooMuch rate_limit_exceeded; overloaded while its bucket is locked."""
        try:
            seconds = self._sessions.draw(session_id, self._per_second)
        except MemoryLocked as locked:
            raise TooMuch(locked.code, cause=locked.cause) from None
        if seconds is not None:
            self._limited("session")
            raise TooMuch("rate_limit_exceeded", retry_after=math.ceil(seconds))

    def give_back(self, session_id: str) -> None:
        """The request turned out to be a copy of another one: it was not this session's to pay for."""
        with suppress(MemoryLocked), self._sessions.session(session_id) as session:
            session.spent = max(0.0, session.spent - 1)

    def refused(self, session_id: str) -> int | None:
        """A call of this session was refused as too much. How many were since it was last told, if it is time to."""
        with suppress(MemoryLocked), self._sessions.session(session_id) as session:
            session.refused += 1
            if not session.told or session.seen - session.told >= TELL_SECONDS:
                count, session.refused, session.told = session.refused, 0, session.seen
                return count
        return None
