"""Front and notary: sessions of agents, as operators list and end them."""

import msgspec

from ipc.events import AuditEvent
from ipc.messages.operation import Operation


class ListSessions(Operation, frozen=True):
    """Sessions that live, the newest first. Answers ListedSessions."""

    limit: int
    principal: str | None = None
    after: str | None = None
    """`next` of the page before."""


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


class RevokeSession(Operation, frozen=True):
    """End one session before its time, with its event: no call of it is opened from then on, and its holds wait no
    more. Answers RevokedSession, or None where no such session lives."""

    session_id: str
    event: AuditEvent
    """Of the operator's act, without `reason` and `change`; the notary adds whose session it was."""


class VoidHolds(Operation, frozen=True):
    """These pending approvals wait no more: the right to their calls was revoked. Those that do not wait stay as they
    are. Answers None."""

    approval_ids: tuple[str, ...]


class RevokedSession(msgspec.Struct, frozen=True):
    """`was_revoked`: before, and nothing was written now. `is_full`: as many sessions are revoked as can be told to
    every front, and nothing was written. `expires_at` as ISO 8601."""

    principal: str
    expires_at: str
    was_revoked: bool = False
    is_full: bool = False
