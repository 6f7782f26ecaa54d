"""Kept values of calls without an event of their end: those whose outcome is unknown, and those that run."""

from typing import Any, Final, NamedTuple

from ipc.process.clock import iso
from notary.unit import Transaction

_OPEN: Final = """
SELECT intents.intent_id, intents.approval_id, intents.trace_id FROM unresolved CROSS JOIN intents USING (seq)
WHERE EXISTS (SELECT 1 FROM kept_values WHERE key = intents.intent_id AND value IS NOT NULL)
AND (intents.principal = ? OR ?) AND dispatched_at < ? ORDER BY intents.seq
"""
_NEVER: Final = "9999"
"""Later than every time of a dispatch."""


class OpenKeptCall(NamedTuple):
    """A call whose outcome is unknown."""

    intent_id: str
    approval_id: str | None
    request_hash: str | None


class OpenKeptCalls(NamedTuple):
    """`unknown` may be erased; `running` may still end, and keep their values until then."""

    unknown: list[OpenKeptCall]
    running: int


def open_kept_calls(
    unit: Transaction, principal: str | None, before: float | None, *, trace_id: str | None = None, limit: int
) -> OpenKeptCalls:
    """Calls that have kept values and no event of their end, the oldest first: `limit` of unknown outcome at most.

    They are of this principal (None: of any), dispatched before this time, Unix seconds, and of this trace, if given.
    """
    until = _NEVER if before is None else iso(before)
    rows: list[Any] = unit.connection.execute(_OPEN, (principal, principal is None, until)).fetchall()
    unknown, running = list[OpenKeptCall](), 0
    for intent_id, approval_id, its_trace in rows:
        if trace_id not in (None, its_trace):
            continue
        if unit.may_still_end(intent_id):
            running += 1
        elif len(unknown) < limit and (intent := unit.intent(intent_id)) is not None:
            unknown.append(OpenKeptCall(intent_id, approval_id, intent.event.request_hash))
    return OpenKeptCalls(unknown, running)
