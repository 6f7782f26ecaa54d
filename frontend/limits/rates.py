"""How much one front takes in a second: token buckets by class, shared, and one for each session.

docs/contract.md, "Limits", and `limits.session_requests_per_second`. Buckets live in this process and on its
monotonic clock. Refusing is cheap and leaves no event each, or a flood would fill the ledger with its own refusals:
what a session was refused is told in one event, at first and then every TELL_SECONDS.
"""

import math
import time
from collections.abc import Callable

from frontend.errors import GateError
from frontend.limits.bucket import TokenBucket

PER_SECOND = {"lease": 50, "write": 20, "read": 100}
"""Lease issuance, operator writes, operator reads; a class without a row is not limited here."""
TELL_SECONDS = 10.0
MAX_SESSIONS = 16_384
"""Sessions with requests in the last TELL_SECONDS; beyond this the one that has been silent longest is forgotten."""


class TooMuch(GateError):
    """More than a caller may have now: refused before anything was decided about the request."""


def _nobody(_: str) -> None:
    """Counts nothing."""


class Rates:
    """Takes a token per request. `limited` hears the class of each one that is refused."""

    def __init__(self, limited: Callable[[str], None] = _nobody) -> None:
        self._buckets = {name: TokenBucket(rate, rate) for name, rate in PER_SECOND.items()}
        self._limited = limited

    def take(self, name: str) -> None:
        """Raises GateError rate_limit_exceeded when the bucket of this class is empty."""
        bucket = self._buckets.get(name)
        if bucket is not None and (seconds := bucket.take()) is not None:
            self._limited(name)
            raise GateError("rate_limit_exceeded", retry_after=math.ceil(seconds))


class _Session:
    """One session's bucket, and what it was refused since that was last told."""

    __slots__ = ("bucket", "refused", "seen", "told")

    def __init__(self, bucket: TokenBucket) -> None:
        self.bucket = bucket
        self.seen = 0.0
        self.refused = 0
        self.told: float | None = None


class SessionRates:
    """A bucket for each session that has asked for something lately; one that is idle is full, and forgotten.

    SECURITY: keyed by the session of a lease whose signature and proof hold, so that a caller can
    neither fill the table with invented names nor empty another session's bucket.
    """

    def __init__(
        self, per_second: int, limited: Callable[[str], None] = _nobody, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._limited = limited
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def take(self, session_id: str) -> None:
        """One request of this session. Raises TooMuch rate_limit_exceeded."""
        seconds = self._touch(session_id).bucket.take()
        if seconds is not None:
            self._limited("session")
            raise TooMuch("rate_limit_exceeded", retry_after=math.ceil(seconds))

    def give_back(self, session_id: str) -> None:
        """The request turned out to be a copy of another one: it was not this session's to pay for."""
        session = self._sessions.get(session_id)
        if session is not None:
            session.bucket.give_back()

    def refused(self, session_id: str) -> int | None:
        """A call of this session was refused as too much. How many were since it was last told, if it is time to."""
        session = self._touch(session_id)
        session.refused += 1
        if session.told is not None and session.seen - session.told < TELL_SECONDS:
            return None
        count, session.refused, session.told = session.refused, 0, session.seen
        return count

    def _touch(self, session_id: str) -> _Session:
        now = self._clock()
        session = self._sessions.pop(session_id, None)
        if session is None:
            session = _Session(TokenBucket(self._per_second, self._per_second, self._clock))
            self._forget(now)
        session.seen = now
        self._sessions[session_id] = session  # the last of the dict is the one seen last
        return session

    def _forget(self, now: float) -> None:
        while self._sessions:
            oldest = next(iter(self._sessions))
            if now - self._sessions[oldest].seen < TELL_SECONDS and len(self._sessions) < MAX_SESSIONS:
                return
            del self._sessions[oldest]
