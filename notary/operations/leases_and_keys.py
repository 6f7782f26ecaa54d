"""Issue, WriteEvent, Revoke and the keys: leases, operators' acts and the gateway's own life, each with its event."""

import time

import msgspec

from ipc.evidence.events import ADMIN_REVOKE_ALL, KEYS_ROTATED, LEASE_ISSUED, AuditEvent
from ipc.operations.evidence import WriteEvent
from ipc.operations.keys import CheckKeys, FollowKeys
from ipc.operations.leases import Issue, Revoke, RevokedEpoch, TooManySessions
from ipc.texts.canonical import MAX_SAFE_INTEGER
from ipc.texts.foreign_texts import MAX_REASON
from ipc.texts.identifiers import new
from notary.operations.allowed import check_event, check_noted
from notary.operations.continuing import keep_for_the_next, session_to_continue
from notary.operations.refusing import write_refusal
from notary.operations.standing import REVOKED as EPOCH_OVER
from notary.operations.standing import end_all
from notary.signing.leases import RememberedLease, digest_of, new_terms, sign_lease
from notary.signing.rotation import KeyFiles
from notary.store.contract import LastSession
from notary.units.performing import performs
from notary.units.tasks import NotAllowed, SecretAnswer, TaskOutcome
from notary.units.transaction import Transaction

_decode_kept = msgspec.msgpack.Decoder(RememberedLease | TooManySessions).decode


@performs(Issue, writes=True)
def issue(unit: Transaction, asked: Issue) -> SecretAnswer | TooManySessions:
    """See Issue. Raises NotAllowed. The token is in the answer alone: nothing that is written holds it."""
    state = unit.state
    check_event(asked.event, LEASE_ISSUED, frozenset({"allow"}))
    if asked.event.principal != asked.principal:
        raise NotAllowed("the event of another lease")
    if asked.ends_at is not None and asked.ends_at <= unit.now:
        raise NotAllowed("the token of the caller has ended")
    last = session_to_continue(unit, asked)
    is_counted = last is not None and last.expires_at > unit.now
    if asked.max_sessions is not None and not is_counted:
        epoch = unit.epoch
        unit.part = "budget"
        sessions, free_in = unit.store.sessions_of(asked.principal, epoch, unit.now)
        if sessions >= asked.max_sessions:
            return TooManySessions(free_in)
    session_id = None if last is None else last.session_id
    terms = new_terms(asked, session_id, epoch=unit.epoch, now=unit.now, ttl=state.settings.lease_ttl_seconds)
    keep_for_the_next(unit, asked, LastSession(terms.session_id, terms.epoch, float(terms.expires_at)))
    lease = sign_lease(state.signers.keys.lease, asked, terms)
    unit.part = "budget"
    if asked.max_calls is not None:
        began = time.perf_counter_ns()
        unit.store.open_budget(lease.session_id, asked.max_calls, terms.expires_at)
        unit.took("issue", began)
    if asked.max_sessions is not None:
        count = unit.store.extend_session if is_counted else unit.store.add_session
        count(asked.principal, lease.session_id, unit.epoch, terms.expires_at)
    told = {"expires_at": lease.expires_at, "epoch": unit.epoch, "max_calls": asked.max_calls, "uid": asked.uid}
    known = {name: value for name, value in told.items() if value is not None}
    unit.append(asked.event, session_id=lease.session_id, lease_jti=lease.lease_jti, lease=known)
    return SecretAnswer(lease, terms)


def issue_again(keys: KeyFiles, asked: Issue, known: TaskOutcome) -> TaskOutcome:
    """The answer to a request for a lease that the notary before answered: the same lease, signed anew.

    SECURITY: for the very request that was answered; a front gets no other lease by repeating its number.
    """
    if known.problem is not None:
        return known
    try:
        kept = _decode_kept(known.encoded())
    except msgspec.ValidationError:
        return TaskOutcome(problem="refused", cause="the number of another operation")
    if isinstance(kept, TooManySessions):
        return known
    if kept.request != digest_of(asked):
        return TaskOutcome(problem="refused", cause="the number of another request for a lease")
    return TaskOutcome(sign_lease(keys.lease, asked, kept))


@performs(WriteEvent, writes=True)
def note(unit: Transaction, asked: WriteEvent) -> None:
    """See WriteEvent. Raises NotAllowed."""
    check_noted(asked.event)
    write_refusal(unit, asked.event)


@performs(Revoke, writes=True)
def revoke(unit: Transaction, asked: Revoke) -> RevokedEpoch:
    """See Revoke. Raises NotAllowed."""
    check_event(asked.event, ADMIN_REVOKE_ALL, frozenset({"allow"}))
    if asked.event.change is not None or asked.above >= MAX_SAFE_INTEGER or len(asked.why) > MAX_REASON:
        raise NotAllowed("a revocation that says more than that")
    previous, current = unit.raise_epoch(asked.above)
    unit.append(
        asked.event, reason=f"the epoch was raised from {previous} to {current}{asked.why}",
        change={"previous_epoch": previous, "current_epoch": current},
    )  # fmt: skip
    end_all(unit, EPOCH_OVER)
    return RevokedEpoch(previous, current)


@performs(CheckKeys)
def check_keys(unit: Transaction, _asked: CheckKeys) -> list[str]:
    """See CheckKeys."""
    unit.part = "keys"
    return unit.state.signers.read()[1]


@performs(FollowKeys, writes=True)
def follow_keys(unit: Transaction, _asked: FollowKeys) -> list[str]:
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
