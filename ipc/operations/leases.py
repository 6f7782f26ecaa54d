"""Operations on leases: their sessions, their budgets, and the epoch that ends them all."""

import msgspec

from ipc.backends.store import Budget
from ipc.evidence.events import AuditEvent
from ipc.operations.operation import FrontOperation


class SignedLease(msgspec.Struct, frozen=True, tag=True):
    """`expires_at` as ISO 8601."""

    lease_jwt: str
    session_id: str
    lease_jti: str
    expires_at: str


class TooManySessions(msgspec.Struct, frozen=True, tag=True):
    """The principal has as many leases as it may have: nothing was written. `retry_after`: seconds until one ends."""

    retry_after: int | None


class Issue(FrontOperation[SignedLease | TooManySessions], frozen=True):
    """Sign a lease, open its budget, write its event: all or nothing."""

    principal: str
    owner: str | None
    scopes: tuple[str, ...]
    max_calls: int | None
    jkt: str
    identity_method: str
    event: AuditEvent
    """Without the identifiers of the lease, which the notary makes."""
    max_sessions: int | None = None
    """Leases that its principal may have at once (ipc/configuration/quotas.py)."""
    uid: int | None = None
    """The user of this host that asks, where it is known."""
    ends_at: int | None = None
    """The end of the token by which the caller is known, in Unix seconds: no lease outlives it."""


class ReadBudget(FrontOperation[Budget], frozen=True):
    """Read the budget of a session."""

    session_id: str


class ReadEpoch(FrontOperation[int], frozen=True):
    """Read the epoch in force."""


class RevokedEpoch(msgspec.Struct, frozen=True):
    """The previous epoch and the one in force."""

    previous: int
    current: int


class Revoke(FrontOperation[RevokedEpoch], frozen=True):
    """Raise the epoch by one, and above `above` too, with its event: all or nothing."""

    event: AuditEvent
    """Without `reason` and `change`, which the notary adds."""
    above: int = 0
    why: str = ""


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose lease is in force. Times as ISO 8601."""

    session_id: str
    lease_jti: str
    principal: str
    owner: str | None
    identity_method: str | None
    uid: int | None
    issued_at: str
    expires_at: str
    max_calls: int | None
    calls_remaining: int | None
    pending_approvals: int


class ListedSessions(msgspec.Struct, frozen=True):
    """`next`: where the next page begins; None at the end."""

    sessions: list[SessionView]
    next: str | None = None


class ListSessions(FrontOperation[ListedSessions], frozen=True):
    """List the sessions that live, the newest first."""

    limit: int
    principal: str | None = None
    after: str | None = None
    """`next` of the page before."""
    asker: str = ""
    """The operator that is charged with the time of the read."""


class SessionRevocation(msgspec.Struct, frozen=True):
    """`was_revoked`: it was revoked before, and nothing was written now. `is_full`: as many sessions are revoked as
    fronts can be told of, and nothing was written. `expires_at` as ISO 8601."""

    principal: str
    expires_at: str
    was_revoked: bool = False
    is_full: bool = False


class RevokeSession(FrontOperation[SessionRevocation | None], frozen=True):
    """End one session before its time, with its event: no call of it is opened from then on, and its pending holds end.
    The answer is None where no such session lives."""

    session_id: str
    event: AuditEvent
    """The event of the operator's act, without `reason` and `change`; the notary adds whose session it was."""
