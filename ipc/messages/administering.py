"""Front and notary: leases, acts of operators, moves of holds, events of the gateway's own life, signing keys."""

from typing import Final

import msgspec

from ipc.events import AuditEvent
from ipc.messages.operation import Operation


class Issue(Operation, frozen=True):
    """Sign a lease, open its budget, write its event: all or nothing. Answers Issued, or TooManySessions."""

    principal: str
    owner: str | None
    scopes: tuple[str, ...]
    max_calls: int | None
    jkt: str
    identity_method: str
    event: AuditEvent
    """Without the identifiers of the lease, which the notary makes."""
    max_sessions: int | None = None
    """Leases that its principal may have at once (ipc/quotas.py)."""
    uid: int | None = None
    """The user of this host that asks, where it is known."""


class Issued(msgspec.Struct, frozen=True, tag=True):
    """`expires_at` as ISO 8601."""

    lease_jwt: str
    session_id: str
    lease_jti: str
    expires_at: str


class TooManySessions(msgspec.Struct, frozen=True, tag=True):
    """The principal has as many leases as it may have: nothing was written. `retry_after`: seconds until one ends."""

    retry_after: int | None


class Note(Operation, frozen=True):
    """Write an event. Answers None."""

    event: AuditEvent


class Revoke(Operation, frozen=True):
    """Raise the epoch by one, beyond `above` too, with its event: all or nothing. Answers Revoked."""

    event: AuditEvent
    """Without `reason` and `change`, which the notary completes."""
    above: int = 0
    why: str = ""


class Revoked(msgspec.Struct, frozen=True):
    """The epoch of before and the one in force."""

    previous: int
    current: int


INTENT_OUTCOMES: Final = ("happened", "did_not_happen", "unknown")


class ResolveIntent(Operation, frozen=True):
    """An operator says what came of an intent without a receipt; with its event, never a receipt. Answers
    ResolvedIntent, or None where no such intent is unresolved."""

    intent_id: str
    outcome: str
    """One of INTENT_OUTCOMES."""
    event: AuditEvent
    """Of the operator's act; the notary adds whose call it was."""


class ResolvedIntent(msgspec.Struct, frozen=True):
    """`is_under_way`: nothing was written, since a worker may still tell of its end."""

    trace_id: str
    action_id: str
    is_under_way: bool = False


class VerifyIntent(Operation, frozen=True):
    """Have this worker look again at what an intent without a receipt was to leave: nothing is executed. What it saw is
    in an event before it is answered, and told by the worker itself.

    Answers Looked, Unverifiable, or NoSuchWorker: then nothing was written. The intent stays unresolved.
    """

    intent_id: str
    worker_id: str
    event: AuditEvent
    """Of the operator's act; the notary adds whose call it was, and what was seen."""


class Looked(msgspec.Struct, frozen=True, tag=True):
    """What the event says now."""

    trace_id: str
    action_id: str
    seen: dict[str, str]


class Unverifiable(msgspec.Struct, frozen=True, tag=True):
    """Refused with this code of the interface: no worker looked."""

    code: str


class MoveHold(Operation, frozen=True):
    """Compare and swap the state of an approval, with its event, and give its call back: all or nothing.

    Exactly one of any number of callers moves it: a claim before its time is over, an expiry afterwards, both by the
    notary's clock. Answers ApprovalRecord after the move, or None.
    """

    approval_id: str
    from_state: str
    to_state: str
    outcome: str
    holder: str | None = None
    event: AuditEvent | None = None
    refunds: bool = False


class CheckKeys(Operation, frozen=True):
    """Read the key files as they lie, and change nothing. Answers sentences, one a problem."""


class FollowKeys(Operation, frozen=True):
    """Put the key files as they lie in force, with an event for each change. Answers sentences, one a problem."""
