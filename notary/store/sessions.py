"""Sessions in the evidence: which leases were issued, and which of them an operator has revoked.

Functions of a connection inside a transaction, for a settled ledger. No table of their own: a lease lives an hour at
most, and its event says all of it. An event of a version that did not say when its lease ends is passed over.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from ipc.evidence.events import LEASE_ISSUED, SESSION_REVOKED
from ipc.leases import MAX_TTL_SECONDS
from ipc.process.clock import parse_iso
from notary.database import DatabaseGone, OpenTransaction
from notary.store.continued import CONTINUES_SECONDS

_BY_TYPE: Final = "FROM events INDEXED BY events_by_type WHERE event_type = ? AND event_type <> 'ActionCall'"


class _LeaseTold(msgspec.Struct, frozen=True):
    expires_at: str
    epoch: int
    max_calls: int | None = None
    uid: int | None = None


class _IssuedEvent(msgspec.Struct, frozen=True):
    timestamp: str
    session_id: str = ""
    lease_jti: str = ""
    principal: str = ""
    owner: str | None = None
    identity_method: str | None = None
    lease: _LeaseTold | None = None


class _Ended(msgspec.Struct, frozen=True):
    expires_at: str


class _RevokedEvent(msgspec.Struct, frozen=True):
    session_id: str
    change: _Ended


class IssuedLease(NamedTuple):
    """One lease, as its event tells of it. `expires_at` in Unix seconds."""

    event: _IssuedEvent
    lease: _LeaseTold
    expires_at: float


class ListPosition(NamedTuple):
    """The place of an event in the order of the list."""

    time: int
    seq: int

    @classmethod
    def read(cls, text: str) -> "ListPosition | None":
        """The place that `str` gave. None for another text."""
        time, _, seq = text.partition(".")
        is_one = all(part.isascii() and part.isdigit() and len(part) < 19 for part in (time, seq))
        return cls(int(time), int(seq)) if is_one else None

    def __str__(self) -> str:
        return f"{self.time}.{self.seq}"


_decode_issued = msgspec.json.Decoder(_IssuedEvent).decode
_decode_revoked = msgspec.json.Decoder(_RevokedEvent).decode


def issued(
    connection: OpenTransaction, now: float, before: ListPosition | None, limit: int
) -> Iterator[tuple[ListPosition, IssuedLease | None]]:
    """Leases of the last hour, the newest first; None for an event that tells of none."""
    since = _since(now)
    until = before or ListPosition(1 << 62, 0)
    rows = connection.execute(
        f"SELECT time, seq, bytes {_BY_TYPE} AND time > ? AND time <= ? AND (time < ? OR seq < ?)"
        " ORDER BY time DESC, seq DESC LIMIT ?",
        (LEASE_ISSUED, since, until.time, until.time, until.seq, limit),
    )
    for time, seq, data in rows:
        yield ListPosition(time, seq), _lease_of(data)


def issued_in(connection: OpenTransaction, session_id: str, now: float) -> IssuedLease | None:
    """The newest lease of one session, if it is of the last hour."""
    row = connection.execute(
        f"SELECT bytes {_BY_TYPE} AND time > ? AND session_id = ? ORDER BY time DESC, seq DESC LIMIT 1",
        (LEASE_ISSUED, _since(now), session_id),
    ).fetchone()
    return None if row is None else _lease_of(row[0])


def newer_sessions(connection: OpenTransaction, since: ListPosition, limit: int) -> set[str]:
    """Sessions with a lease that was issued at this place or later; at most so many leases are looked at."""
    rows = connection.execute(
        f"SELECT session_id {_BY_TYPE} AND time >= ? AND (time > ? OR seq >= ?) ORDER BY time, seq LIMIT ?",
        (LEASE_ISSUED, since.time, since.time, since.seq, limit),
    )
    return {session_id for (session_id,) in rows}


def revoked(connection: OpenTransaction, now: float) -> dict[str, float]:
    """Sessions whose leases would live, or that could be continued, and until when."""
    rows = connection.execute(f"SELECT bytes {_BY_TYPE} AND time > ?", (SESSION_REVOKED, _since(now)))
    ends = {}
    for (data,) in rows:
        try:
            event = _decode_revoked(data)
            ends[event.session_id] = parse_iso(event.change.expires_at) + CONTINUES_SECONDS
        except ValueError as error:
            # SECURITY: a revocation that can't be read must not be passed over.
            raise DatabaseGone(f"a stored revocation makes no sense: {error}") from None
    return living(ends, now)


def living(ends: dict[str, float], now: float) -> dict[str, float]:
    """Those that have not ended: the same dictionary where that is all."""
    if all(end > now for end in ends.values()):
        return ends
    return {session_id: end for session_id, end in ends.items() if end > now}


def _lease_of(data: bytes) -> IssuedLease | None:
    try:
        event = _decode_issued(data)
        return None if event.lease is None else IssuedLease(event, event.lease, parse_iso(event.lease.expires_at))
    except ValueError as error:
        raise DatabaseGone(f"a stored event makes no sense: {error}") from None


def _since(now: float) -> int:
    return int((now - MAX_TTL_SECONDS - CONTINUES_SECONDS) * 1000)
