"""Sessions of agents, as operators see and revoke them."""

from .noun import NeverNull, Noun


class Session(Noun, frozen=True, kw_only=True):
    """A session whose lease is in force."""

    session_id: str
    lease_jti: NeverNull[str]
    principal: str
    owner: str | None
    identity_method: str | None
    """How the principal was identified: `peercred`, `jwt`, `x509`, or in dev mode `none`."""
    uid: int | None
    """The user of this host that asked for the lease; null where it is not known."""
    issued_at: str
    expires_at: str
    max_calls: int | None
    """Calls that the session began with; null where they are not counted."""
    calls_remaining: int | None
    """Calls that are left."""
    pending_approvals: int
    """Calls of it that wait for a person."""


class Sessions(Noun, frozen=True, kw_only=True):
    """Sessions that live, the newest first."""

    sessions: tuple[Session, ...]
    count: NeverNull[int]
    next: str | None
    """Where the next page begins (`after`); null at the end. A page may be short, or empty, and not be the last one:
    each looks at so many leases."""


class RevokedSession(Noun, frozen=True, kw_only=True):
    """Its lease is refused from now on, and what waited of it has expired."""

    session_id: str
    principal: str
    expires_at: str
    """When its lease would have ended."""
    already_revoked: bool
    """It was before, and nothing has changed."""
