"""Kept values of calls without an event of their end: those whose outcome is unknown, and those that run."""

from typing import Any, Final, NamedTuple

from ipc.process.clock import iso
from notary.units.transaction import Transaction

_OPEN: Final = """
SELECT intents.intent_id, intents.approval_id FROM unresolved CROSS JOIN intents USING (seq)
WHERE EXISTS (SELECT 1 FROM kept_values WHERE key = intents.intent_id AND value IS NOT NULL)
AND (intents.principal = ? OR ?) AND (intents.trace_id = ? OR ?) AND dispatched_at < ? ORDER BY intents.seq
"""
_NEVER: Final = "9999"
"""Later than every time of a dispatch."""


class OpenKept(NamedTuple):
    """Which of them are asked for: those of a principal, dispatched before a time (Unix seconds), of a trace and of a
    request. None: any."""

    principal: str | None = None
    before: float | None = None
    trace_id: str | None = None
    request_hash: str | None = None


class OpenKeptCall(NamedTuple):
    """A call whose outcome is unknown."""

    intent_id: str
    approval_id: str | None
    request_hash: str | None


class OpenKeptCalls(NamedTuple):
    """`unknown` may be erased; `running` may still end, and keep their values until then."""

    unknown: list[OpenKeptCall]
    running: int


def open_kept_calls(unit: Transaction, wanted: OpenKept, *, limit: int) -> OpenKeptCalls:
    """Calls that have kept values and no event of their end, the oldest first: `limit` of unknown outcome at most."""
    until = _NEVER if wanted.before is None else iso(wanted.before)
    asked = (wanted.principal, wanted.principal is None, wanted.trace_id, wanted.trace_id is None, until)
    rows: list[Any] = unit.connection.execute(_OPEN, asked).fetchall()
    unknown, running = list[OpenKeptCall](), 0
    for intent_id, approval_id in rows:
        intent = unit.intent(intent_id)
        if intent is None or wanted.request_hash not in (None, intent.event.request_hash):
            continue
        if unit.may_still_end(intent_id):
            running += 1
        elif len(unknown) < limit:
            unknown.append(OpenKeptCall(intent_id, approval_id, intent.event.request_hash))
    return OpenKeptCalls(unknown, running)
