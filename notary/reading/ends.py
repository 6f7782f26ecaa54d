"""Whether a ledger ends where it says that it ends: what a start can tell of it without reading it.

Reads the last rows alone; a change to earlier rows is found by a walk (notary/reading/whole.py).
"""

import msgspec

from ipc.evidence.events import ADMIN_REVOKE_ALL, CLOCK_ACCEPTED, ROLLBACK_ACCEPTED
from ipc.texts.canonical import sha256_hex
from notary.database import DatabaseGone, OpenTransaction
from notary.ledger import history
from notary.ledger.cut import BEGINNING, read_cut
from notary.ledger.head import read_head
from notary.store import proofs

RAISING = (ADMIN_REVOKE_ALL, ROLLBACK_ACCEPTED, CLOCK_ACCEPTED)
"""Types of events that tell of a new epoch."""
_LAST_EVENT = "SELECT seq, bytes, leaf FROM events ORDER BY seq DESC LIMIT 1"
_LAST_INTENT = "SELECT leaf FROM intents ORDER BY seq DESC LIMIT 1"
_LAST_RAISE = (
    "SELECT bytes FROM events INDEXED BY events_by_type WHERE event_type = ? AND event_type <> 'ActionCall'"
    " ORDER BY time DESC, seq DESC LIMIT 1"
)


class _Epochs(msgspec.Struct):
    current_epoch: int = 0


class _Raise(msgspec.Struct):
    change: _Epochs | None = None


_decode = msgspec.json.Decoder(_Raise).decode


def epoch_raised(stored: bytes) -> int:
    """The epoch that an event of a type in RAISING has put in force; 0 for an early event, which does not say."""
    try:
        change = _decode(stored).change
    except msgspec.MsgspecError:
        return 0
    return 0 if change is None else change.current_epoch


def problem_of_end(connection: OpenTransaction, leaves: int) -> str | None:
    """Why the last event, the last leaf or the epoch is not what the rest of a settled ledger of so many leaves says.

    Raises DatabaseGone where it does not say.
    """
    head = read_head(connection)
    if head is None:
        raise DatabaseGone("the ledger does not say where its chain ends")
    seq, stored, leaf = connection.execute(_LAST_EVENT).fetchone() or (0, None, None)
    if seq != head.seq:
        return f"the ledger says that it has {head.seq} events, and the last one there has number {seq}: it was cut"
    if stored is not None and sha256_hex(stored) != head.hash:
        return f"the last event, number {seq}, is not the one that the ledger's chain ends with: it was rewritten"
    places = [place for place in (leaf, *(connection.execute(_LAST_INTENT).fetchone() or ())) if place is not None]
    expected = 1 + max(places) if places else history.read(connection).leaves
    if expected != leaves:
        return f"the ledger's tree has {leaves} leaves, and its last event or intent is number {expected} of them"
    return _problem_of_epoch(connection)


def _problem_of_epoch(connection: OpenTransaction) -> str | None:
    rows = (connection.execute(_LAST_RAISE, (name,)).fetchone() for name in RAISING)
    raised = max((epoch_raised(row[0]) for row in rows if row is not None), default=0)
    raised = max(raised, read_cut(connection, BEGINNING).epoch)
    epoch = proofs.known_epoch(connection)
    if epoch is None or epoch < raised:
        return f"the epoch in force is {epoch}, and an event raised it to {raised}: revoked leases would count"
    return None
