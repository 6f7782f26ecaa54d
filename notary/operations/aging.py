"""Erases kept values that are older than `evidence.keep_days`, some calls with each unit, as the notary itself asks."""

from typing import Final

from ipc.evidence.events import EVIDENCE_ERASED, AuditEvent
from ipc.operations.erasing import ErasedKept
from ipc.operations.operation import Operation
from ipc.process.clock import iso
from ipc.texts.identifiers import new
from notary.database import OpenTransaction
from notary.operations.erasing import AT_ONCE, ErasedSlice, call_of, erased, with_open
from notary.operations.open_kept import OpenKept
from notary.units.performing import performs
from notary.units.transaction import Transaction

DAY: Final = 24 * 3600.0
REASON: Final = "older than evidence.keep_days"
_OLDEST: Final = """
SELECT time FROM events WHERE seq = (SELECT min(seq) FROM kept_values WHERE value IS NOT NULL AND seq > ?)
"""
_AGED: Final = """
SELECT seq, time, bytes FROM events WHERE seq IN (
    SELECT DISTINCT seq FROM kept_values WHERE value IS NOT NULL AND seq > ? ORDER BY seq LIMIT ?
) ORDER BY seq
"""
_OLDEST_OPEN: Final = """
SELECT 1 FROM unresolved CROSS JOIN intents USING (seq) WHERE dispatched_at < ?
AND EXISTS (SELECT 1 FROM kept_values WHERE key = intents.intent_id AND value IS NOT NULL) LIMIT 1
"""


class EraseAged(Operation[ErasedKept], frozen=True):
    """Asked by the notary itself: erase values of some calls before this time, Unix seconds."""

    before: float
    keep_days: int
    after: int = 0
    """Where to go on: `next` of the answer before."""


def has_aged(connection: OpenTransaction, before: float, after: int) -> bool:
    """True if values of a call before this time are there: of the oldest call from this event on, or an open one."""
    oldest = connection.execute(_OLDEST, (after,)).fetchone()
    if oldest is not None and oldest[0] < before * 1000:
        return True
    return connection.execute(_OLDEST_OPEN, (iso(before),)).fetchone() is not None


@performs(EraseAged, writes=True, settles=True)
def erase_aged(unit: Transaction, asked: EraseAged) -> ErasedKept:
    """See EraseAged."""
    unit.settle()
    event = AuditEvent(
        event_type=EVIDENCE_ERASED, trace_id=new("trc_"), principal="gateway", decision="allow", reason=REASON
    )
    told = {"keep_days": asked.keep_days, "before": iso(asked.before)}
    return erased(unit, event, told, _aged(unit, asked))


def _aged(unit: Transaction, asked: EraseAged) -> ErasedSlice:
    """The oldest calls, up to the first that is not older. Numbers of events grow with time."""
    rows = unit.connection.execute(_AGED, (asked.after, AT_ONCE)).fetchall()
    old = [row for row in rows if row[1] < asked.before * 1000]
    calls = [call_of(bytes(data)) for _, _, data in old]
    if len(old) == AT_ONCE:
        return ErasedSlice(calls, old[-1][0])
    return with_open(unit, calls, old[-1][0] if old else asked.after, OpenKept(before=asked.before))
