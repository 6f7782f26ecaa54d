"""Sessions of agents, as operators see and revoke them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from frontend.contract.forms import Query

DEFAULT_SESSIONS, MAX_SESSIONS = 50, 200


class SessionsQuery(Query, frozen=True, kw_only=True):
    """Which sessions to list."""

    principal: str | None = None
    """Only those of this principal."""
    limit: Annotated[int, Meta(ge=1, le=MAX_SESSIONS)] = DEFAULT_SESSIONS
    """How many at most, the newest first."""
    after: Annotated[str, Meta(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] | None = None
    """`next` of the page before."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session whose lease is in force."""

    session_id: str
    lease_jti: str
    principal: str
    owner: str | None
    identity_method: str | None
    """How the principal was told: `peercred`, or in dev mode `none`."""
    uid: int | None
    """The user of this host that asked for the lease; null where it is not known."""
    issued_at: str
    expires_at: str
    max_calls: int | None
    """Calls that the session began with; null where they are not counted."""
    calls_remaining: int | None
    """What is left of them."""
    pending_approvals: int
    """Calls of it that wait for a person."""


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions that live, the newest first."""

    sessions: list[Session]
    count: int
    next: str | None
    """Where the next page begins (`after`); null at the end. A page may be short, or empty, and not be the last one:
    each looks at so many leases."""


class RevokedSession(msgspec.Struct, frozen=True, kw_only=True):
    """Its lease is refused from now on, and what waited of it has expired."""

    session_id: str
    principal: str
    expires_at: str
    """When its lease would have ended."""
    already_revoked: bool
    """It was before, and nothing has changed."""
