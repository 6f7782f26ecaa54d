"""Sessions of agents, as the gateway tells operators of them."""

from dataclasses import dataclass, field

from gateway_client.results import Raw


@dataclass(frozen=True, kw_only=True)
class Session:
    """A session whose lease is in force. `max_calls` and `calls_remaining` are None where calls are not counted."""

    session_id: str
    principal: str
    issued_at: str
    expires_at: str
    pending_approvals: int
    owner: str | None = None
    identity_method: str | None = None
    uid: int | None = None
    lease_jti: str | None = None
    max_calls: int | None = None
    calls_remaining: int | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    """The newest first. `next`: where the next page begins, None at the end; a page may be short before that."""

    sessions: tuple[Session, ...]
    next: str | None = None
    raw: Raw = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class RevokedSession:
    """Its lease is refused from now on; `already_revoked`: it was before."""

    session_id: str
    principal: str
    expires_at: str
    already_revoked: bool
    raw: Raw = field(repr=False)
