"""Issue, Note, Revoke and the keys: leases, operators' acts and the gateway's own life, each with its event."""

import time

from ipc.canonical import MAX_SAFE_INTEGER
from ipc.events import ADMIN_REVOKE_ALL, KEYS_ROTATED, LEASE_ISSUED, AuditEvent
from ipc.identifiers import new
from ipc.messages import CheckKeys, FollowKeys, Issue, Issued, Note, Revoke, Revoked, TooManySessions
from ipc.texts import MAX_REASON
from notary.operations.allowed import check_event, check_noted
from notary.signing.leases import sign_lease
from notary.tasks import NotAllowed
from notary.unit import Unit


def issue(unit: Unit, asked: Issue) -> Issued | TooManySessions:
    """See Issue. Raises NotAllowed."""
    state = unit.state
    check_event(asked.event, LEASE_ISSUED, frozenset({"allow"}))
    if asked.event.principal != asked.principal:
        raise NotAllowed("the event of another lease")
    if asked.max_sessions is not None:
        epoch = unit.epoch
        unit.part = "budget"
        sessions, free_in = unit.store.sessions_of(asked.principal, epoch, unit.now)
        if sessions >= asked.max_sessions:
            return TooManySessions(free_in)
    lease = sign_lease(
        state.signers.keys.lease, asked, epoch=unit.epoch, now=unit.now, ttl=state.settings.lease_ttl_seconds
    )  # fmt: skip
    unit.part = "budget"
    if asked.max_calls is not None:
        began = time.perf_counter_ns()
        unit.store.open_budget(lease.session_id, asked.max_calls, lease.exp)
        unit.took("issue", began)
    if asked.max_sessions is not None:
        unit.store.add_session(asked.principal, lease.session_id, unit.epoch, lease.exp)
    told = {"expires_at": lease.expires_at, "epoch": unit.epoch, "max_calls": asked.max_calls, "uid": asked.uid}
    known = {name: value for name, value in told.items() if value is not None}
    unit.append(asked.event, session_id=lease.session_id, lease_jti=lease.lease_jti, lease=known)
    return Issued(lease.token, lease.session_id, lease.lease_jti, lease.expires_at)


def note(unit: Unit, asked: Note) -> None:
    """See Note. Raises NotAllowed."""
    check_noted(asked.event)
    unit.append(asked.event)


def revoke(unit: Unit, asked: Revoke) -> Revoked:
    """See Revoke. Raises NotAllowed."""
    check_event(asked.event, ADMIN_REVOKE_ALL, frozenset({"allow"}))
    if asked.event.change is not None or asked.above >= MAX_SAFE_INTEGER or len(asked.why) > MAX_REASON:
        raise NotAllowed("a revocation that says more than that")
    previous, current = unit.raise_epoch(asked.above)
    unit.append(
        asked.event, reason=f"the epoch was raised from {previous} to {current}{asked.why}",
        change={"previous_epoch": previous, "current_epoch": current},
    )  # fmt: skip
    return Revoked(previous, current)


def check_keys(unit: Unit, _asked: CheckKeys) -> list[str]:
    """See CheckKeys."""
    unit.part = "keys"
    return unit.state.signers.read()[1]


def follow_keys(unit: Unit, _asked: FollowKeys) -> list[str]:
    """See FollowKeys. One file that will not do holds up no other key."""
    unit.part = "keys"
    signers = unit.state.signers
    keys, problems = signers.read()
    for change in signers.changes(keys):
        event = AuditEvent(event_type=KEYS_ROTATED, trace_id=new("trc_"), principal="gateway", decision="allow")
        unit.append(
            event, key_purpose=change.purpose, key_id=change.key_id, previous_key_id=change.previous_key_id
        )  # fmt: skip
    unit.after(lambda: signers.use(keys))
    return problems
