"""ListSessions and RevokeSession: which leases live, and ending those of one session before their time.

Guarantees that a revocation and its event are one transaction, that a session which was revoked stays so for as long as
its lease would live, whatever restarts, and that a list looks at a bounded number of leases.
"""

from msgspec.structs import replace

from ipc.evidence.events import SESSION_REVOKED
from ipc.leases import MAX_TTL_SECONDS
from ipc.operations.leases import ListedSessions, ListSessions, RevokeSession, SessionRevocation, SessionView
from notary.operations.allowed import check_event
from notary.store import sessions
from notary.store.continued import CONTINUES_SECONDS
from notary.store.sessions import IssuedLease, ListPosition
from notary.units.performing import performs
from notary.units.tasks import NotAllowed
from notary.units.transaction import Transaction

MAX_NEWER = 50_000
"""Leases that are looked at to know which sessions earlier pages have shown."""


@performs(ListSessions, settles=True, is_paced=True)
def list_sessions(unit: Transaction, asked: ListSessions) -> ListedSessions:
    """See ListSessions. Raises NotAllowed."""
    before = None
    if asked.after is not None and (before := ListPosition.read(asked.after)) is None:
        raise NotAllowed("a page that begins nowhere")
    unit.settle()
    leases: list[IssuedLease] = []
    walked, place, limits = 0, None, unit.state.limits
    # A session is shown once, by its newest lease.
    seen = set() if before is None else sessions.newer_sessions(unit.connection, before, MAX_NEWER)
    for place, lease in sessions.issued(unit.connection, unit.now, before, limits.leases_at_once):  # noqa: B007 - the last one, afterwards
        walked += 1
        if lease is None or lease.event.session_id in seen:
            continue
        seen.add(lease.event.session_id)
        if _lives(unit, lease) and asked.principal in (None, lease.event.principal):
            leases.append(lease)
            if len(leases) == asked.limit:
                break
    has_more = len(leases) == asked.limit or walked == limits.leases_at_once
    unit.part = "store"
    unit.store.foresee([one.event.session_id for one in leases if one.lease.max_calls is not None])
    return ListedSessions([_view(unit, one) for one in leases], str(place) if has_more else None)


@performs(RevokeSession, writes=True)
def revoke_session(unit: Transaction, asked: RevokeSession) -> SessionRevocation | None:
    """See RevokeSession. Raises NotAllowed."""
    check_event(asked.event, SESSION_REVOKED, frozenset({"allow"}))
    if asked.event.change is not None or asked.event.reason is not None or asked.event.session_id is not None:
        raise NotAllowed("a revocation that says more than that")
    unit.settle()
    issued = sessions.issued_in(unit.connection, asked.session_id, unit.now)
    if issued is None or issued.lease.epoch != unit.epoch or issued.expires_at + CONTINUES_SECONDS <= unit.now:
        return None
    event, lease = issued.event, issued.lease
    answer = SessionRevocation(event.principal, lease.expires_at)
    if unit.is_revoked(asked.session_id):
        return replace(answer, was_revoked=True)
    if len(sessions.living(unit.revoked, unit.now)) >= unit.state.limits.revoked_sessions:
        return replace(answer, is_full=True)
    # SECURITY: another host that shares the store may have issued a later lease, which this ledger does not have.
    ends = issued.expires_at if unit.store.is_in_ledger else unit.now + MAX_TTL_SECONDS
    unit.revoke_session(asked.session_id, event.principal, lease.epoch, ends + CONTINUES_SECONDS)
    change = {"principal": event.principal, "lease_jti": event.lease_jti, "expires_at": lease.expires_at}
    reason = f"a session of {event.principal} was revoked"
    unit.append(asked.event, session_id=asked.session_id, reason=reason, change=change)
    return answer


def _lives(unit: Transaction, issued: IssuedLease) -> bool:
    is_in_time = issued.lease.epoch == unit.epoch and issued.expires_at > unit.now
    return is_in_time and issued.event.session_id not in unit.revoked


def _view(unit: Transaction, issued: IssuedLease) -> SessionView:
    event, lease = issued.event, issued.lease
    remaining = None
    if lease.max_calls is not None:
        unit.part = "budget"
        remaining = unit.store.budget(event.session_id).remaining
    unit.part = "approvals"
    return SessionView(
        session_id=event.session_id, lease_jti=event.lease_jti, principal=event.principal, owner=event.owner,
        identity_method=event.identity_method, uid=lease.uid, issued_at=event.timestamp, expires_at=lease.expires_at,
        max_calls=lease.max_calls, calls_remaining=remaining,
        pending_approvals=unit.store.waiting_of_session(event.session_id, unit.moment).number,
    )  # fmt: skip
