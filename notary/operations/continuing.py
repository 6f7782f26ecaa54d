"""Which session a new lease belongs to (docs/decisions/identity.md, "Leases, identity, scopes").

Guarantees that a session which was revoked, or is of an older epoch, is never continued, and that within a session no
lease ends before an earlier one. Where the store fails, the lease begins a new session (`TransactionRunner._given_up`).
"""

import hashlib

import msgspec

from ipc.operations.leases import Issue
from notary.signing.leases import end_of
from notary.store.continued import CONTINUES_SECONDS
from notary.store.contract import LastSession
from notary.units.transaction import Transaction


def holder_of(asked: Issue) -> str:
    """The holder of the lease, as a digest of key, principal and user of this host, and behind an edge of the subject.

    SECURITY: no proof of the key comes with a request for a lease, so the key does not tell subjects apart.
    """
    parts: list[str | int | None] = [asked.jkt, asked.principal, asked.uid]
    if asked.event.identity_subject is not None:
        parts += [asked.event.identity_issuer, asked.event.identity_subject]
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()


def session_to_continue(unit: Transaction, asked: Issue) -> LastSession | None:
    """The session that a lease asked for now belongs to; None: a new one."""
    if asked.max_calls is not None or not unit.continues:
        return None
    unit.part = "store"
    last = unit.store.last_session(holder_of(asked))
    if last is None or last.epoch != unit.epoch or last.expires_at + CONTINUES_SECONDS <= unit.now:
        return None
    is_longer = end_of(asked, unit.now, unit.state.settings.lease_ttl_seconds) >= last.expires_at
    return last if is_longer and not unit.is_revoked(last.session_id) else None


def keep_for_the_next(unit: Transaction, asked: Issue, session: LastSession) -> None:
    """The next lease of this holder continues this session."""
    if asked.max_calls is None and unit.continues:
        unit.part = "store"
        unit.store.keep_session(holder_of(asked), session)
