"""Reads counts of calls (notary/ledger/activity.py) as operators see them."""

from decimal import Decimal
from typing import Final

from msgspec import convert

from contract.activity import ActivityBucket, AuditSummary, CountedAction, CountedPrincipal, DecisionCounts, ValueSum
from ipc.process.clock import iso
from notary.database import OpenTransaction
from notary.ledger.activity import ACTION, DECISION, OTHERS, PRINCIPAL
from notary.ledger.activity_sums import EXACT, SumReader

MAX_NAMES: Final = 100
"""Actions, and principals, that one answer lists."""
MAX_SUMS: Final = 1000
_SUMS: Final = (
    "SELECT action_id, pointer, sum FROM activity_sums WHERE step = ? AND hour >= ? AND hour < ?"
    " ORDER BY action_id, pointer"
)
_BY_HOUR: Final = "SELECT hour, name, count FROM activity WHERE step = ? AND hour >= ? AND hour < ? AND kind = ?"
_BY_NAME: Final = (
    "SELECT name, CAST(sum(count) AS BIGINT) AS total FROM activity"
    " WHERE step = ? AND hour >= ? AND hour < ? AND kind = ?"
    " GROUP BY name ORDER BY total DESC, name"
)


def summary_of(
    connection: OpenTransaction, first_hour: int, end_hour: int, step_hours: int, *, is_complete: bool
) -> AuditSummary:
    """The summary of these hours, of which `step_hours` make a bucket."""
    span = (step_hours, first_hour, end_hour)
    starts = range(first_hour, end_hour, step_hours)
    counts: list[dict[str, int]] = [{} for _ in starts]
    for hour, decision, count in connection.execute(_BY_HOUR, (*span, DECISION)):
        bucket = counts[(hour - first_hour) // step_hours]
        bucket[decision] = bucket.get(decision, 0) + count
    return AuditSummary(
        step="hour" if step_hours == 1 else "day",
        buckets=tuple(
            ActivityBucket(start=iso(start * 3600), counts=convert(some, DecisionCounts))
            for start, some in zip(starts, counts, strict=True)
        ),
        actions=tuple(CountedAction(action_id=name, count=count) for name, count in _busiest(connection, span, ACTION)),
        principals=tuple(
            CountedPrincipal(principal=name, count=count) for name, count in _busiest(connection, span, PRINCIPAL)
        ),
        sums=_sums(connection, span),
        complete=is_complete,
    )


def _busiest(connection: OpenTransaction, span: tuple[int, int, int], kind: str) -> list[tuple[str | None, int]]:
    """At most MAX_NAMES; the rest of them, if there is any, is the last one and has no name."""
    rows = connection.execute(_BY_NAME, (*span, kind)).fetchall()
    named = [(str(name), int(total)) for name, total in rows if name != OTHERS]
    rest = sum(total for name, total in rows if name == OTHERS)
    if len(named) > MAX_NAMES or (rest and len(named) == MAX_NAMES):
        rest += sum(total for _, total in named[MAX_NAMES - 1 :])
        named = named[: MAX_NAMES - 1]
    return [*named, *([(None, int(rest))] if rest else [])]


def _sums(connection: OpenTransaction, span: tuple[int, int, int]) -> tuple[ValueSum, ...]:
    totals, reader = dict[tuple[str, str], Decimal](), SumReader(connection)
    for action_id, pointer, stored in connection.execute(_SUMS, span).fetchall():
        if (total := reader.opened(stored)) is not None:
            totals[action_id, pointer] = EXACT.add(totals.get((action_id, pointer), Decimal(0)), total)
    return tuple(
        ValueSum(action_id=action_id, pointer=pointer, sum=format(total, "f"))
        for (action_id, pointer), total in list(totals.items())[:MAX_SUMS]
    )
