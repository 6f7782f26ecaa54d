"""Which lease a call goes out with: the states of a session, without I/O and without a clock of its own. Thread-safe.

A lease is used until RENEW_SECONDS before its end; then the next call takes another one. A new lease is a new
session with a new budget: where a budget was asked for, a lease is used to its end and not replaced unless the terms
say so. Holds can be polled by their own session only, so the lease of each hold is kept as long as it lives.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gateway_client.contract.leases import Lease as IssuedLease
from gateway_client.errors import AuthenticationFailed, ProtocolViolation
from gateway_client.results import Session

RENEW_SECONDS = 60.0
"""docs/contract.md, "DPoP proof", rule 5."""
WAIT_SECONDS = 240.0
"""Seconds that a lease should have left for a call that may wait for an operator: a hold lives for 300 seconds."""
POSTPONE_SECONDS = 5.0
"""After a renewal that failed, the last minute of a lease is used for so long before another is asked for."""
MAX_HOLDS = 1024


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """The terms of a request for a lease.

    With `max_calls`, a session ends with its lease or its budget, and the client then raises lease_expired or
    budget_exhausted: call `renew()` for another one. `renews_budget` lets the client take a new lease, with a whole
    new budget, by itself. A lease that has less than `seconds_left` left when a call goes out is renewed first:
    WAIT_SECONDS suits a program that polls the holds of its calls later. `token` returns the token (JWT) by which a
    gateway's edge knows this agent; it is called for each lease, so it may read a file that is replaced. `holder_proof`
    is for an edge that asks for leases on behalf of others: it returns a new proof of the key that `token` is bound to.
    """

    scopes: tuple[str, ...] = ("tools:call",)
    max_calls: int | None = None
    renews_budget: bool = False
    seconds_left: float = RENEW_SECONDS
    token: Callable[[], str] | None = field(default=None, repr=False)
    holder_proof: Callable[[], str] | None = field(default=None, repr=False)

    @property
    def keeps_session(self) -> bool:
        """True when only the program itself may begin another session."""
        return self.max_calls is not None and not self.renews_budget


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease with its token. `expires_at` and `issued_at` in Unix seconds of this host's clock. `knows_keys`: the
    gateway that issued it knows idempotency keys."""

    token: str = field(repr=False)
    session: Session
    expires_at: float
    issued_at: float
    knows_keys: bool = False

    def left(self, now: float) -> float:
        """Seconds until its end, negative after it."""
        return self.expires_at - now


def lease_of(answer: IssuedLease, now: float, *, knows_keys: bool) -> Lease:
    """The lease in the answer of POST /v1/leases. Raises ProtocolViolation for a token that no header can carry, and
    for an `expires_at` that is not a time."""
    if not answer.lease_jwt or not all("!" <= one <= "~" for one in answer.lease_jwt):
        raise ProtocolViolation("the lease is not a token")
    try:
        end = datetime.fromisoformat(answer.expires_at)
        if end.tzinfo is None:
            raise ValueError
        expires_at = end.timestamp()
    except (ValueError, OverflowError):
        raise ProtocolViolation("the lease's expires_at is no time") from None
    session = Session(session_id=answer.session_id, lease_jti=answer.lease_jti, expires_at=answer.expires_at)
    return Lease(answer.lease_jwt, session, expires_at, now, knows_keys)


class Leases:
    """The lease in use and those of holds. Every method is one step: nothing here waits."""

    def __init__(self, terms: LeaseTerms) -> None:
        self.terms = terms
        self.current: Lease | None = None
        self._of_hold: dict[str, Lease] = {}
        self._not_before = float("-inf")
        self._lock = threading.Lock()

    def usable(self, now: float, seconds: float = RENEW_SECONDS) -> Lease | None:
        """The current lease if it lives for `seconds` more; None when the next call needs a new one.

        Raises AuthenticationFailed lease_expired when the terms keep the session and it is over.
        """
        lease = self.current
        if lease is None:
            return None
        if self.terms.keeps_session:
            if lease.left(now) <= 0:
                raise AuthenticationFailed("lease_expired", reason="the session had a budget; renew() begins another")
            return lease
        if lease.left(now) > 0 and self._not_before - POSTPONE_SECONDS <= now < self._not_before:
            return lease
        lifetime = lease.expires_at - lease.issued_at
        # A lease that is short from the start must not be replaced at every call.
        return lease if lease.left(now) >= min(seconds, 0.8 * lifetime) else None

    def living(self, now: float) -> Lease | None:
        """The current lease if it has not run out."""
        return self.current if self.current is not None and self.current.left(now) > 0 else None

    def postpone(self, now: float) -> None:
        """A renewal has failed: the next one is not tried at once, while the lease lives."""
        self._not_before = now + POSTPONE_SECONDS

    def drop(self, lease: Lease) -> None:
        """The gateway refuses this lease."""
        with self._lock:
            if self.current is lease:
                self.current = None

    def replace(self, lease: Lease) -> None:
        """Calls go out with this lease from now on."""
        with self._lock:
            self.current = lease

    def remember(self, approval_id: str, lease: Lease, now: float) -> None:
        """A call was held under this lease."""
        with self._lock:
            for old in [one for one, held in self._of_hold.items() if held.left(now) <= 0]:
                del self._of_hold[old]
            while len(self._of_hold) >= MAX_HOLDS:
                del self._of_hold[next(iter(self._of_hold))]
            self._of_hold[approval_id] = lease

    def of_hold(self, approval_id: str, now: float) -> Lease | None:
        """The lease that a hold was made under, while it lives."""
        with self._lock:
            lease = self._of_hold.get(approval_id)
        return lease if lease is not None and lease.left(now) > 0 else None
