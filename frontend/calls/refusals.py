"""Refusals of callers who have proven nothing, or whose proof can't be looked up: one event for many, so that a flood
of them floods no ledger.

The first one of a user with a code (the first `own_events`) is in evidence before it is answered; those after it are
counted, and told in one event once a minute has passed. Guarantees a bounded table, and that every one is counted in
some event or, where the ledger does not take it, in the next one. The refusal is answered all the same, and holds up
no other caller.
Counts that a front has not told yet are lost when it is killed; metrics keep the sum (docs/decisions/evidence.md,
"Audit, receipts, intents").
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import trio

from frontend.calls.audit_writer import AuditWriter
from frontend.deadlines import CallDeadlines
from frontend.errors import GateError
from frontend.limits.windows import MAX_KEYS, Window, Windows
from frontend.telemetry.lines import RefusalLines
from frontend.telemetry.logs import log
from ipc.evidence.events import ACTION_CALL, LEASE_ISSUED, OPERATOR_AUTH_FAILED

OTHERS: Final = -1
"""Stands for every user beyond the bound of separate counters."""

Key = tuple[int | None, str]
_LINES: Final = {
    OPERATOR_AUTH_FAILED: "an operator's request was refused",
    ACTION_CALL: "calls without a valid proof were refused",
    LEASE_ISSUED: "leases were refused",
}
"""Type of event -> its line of the log."""


class RefusedRequest(msgspec.Struct, frozen=True):
    """One refused request. `uid` is the peer's, None where the connection shows none."""

    event_type: str
    uid: int | None
    error: GateError
    fields: dict[str, Any] = msgspec.field(default_factory=dict)
    """Fields of the event, the same for all refusals that one event counts. SECURITY: no text of the caller."""
    who: dict[str, Any] = msgspec.field(default_factory=dict)
    """Known fields of the caller; for many refusals, of the latest caller that was known."""
    own_events: int = 1
    """Refusals of one user and code that have an event each, until there was none for a whole window."""


@dataclass(slots=True)
class _Window(Window):
    common: dict[str, Any] | None = None
    who: dict[str, Any] = field(default_factory=dict)
    told: int = 0
    """Refusals that had an event of their own."""

    def add(self, refusal: RefusedRequest) -> None:
        self.count += 1
        self.merge(refusal.fields)
        self.who |= {name: value for name, value in refusal.who.items() if value is not None}

    def merge(self, fields: dict[str, Any] | None) -> None:
        if fields is None or self.common is None:
            self.common = fields if self.common is None else self.common
        else:
            self.common = {name: value for name, value in fields.items() if self.common.get(name) == value}


class Refusals:
    """The refusals of one front. `max_users` bounds the separate counters, by user and code, for each type of event."""

    def __init__(
        self, journal: AuditWriter, deadlines: CallDeadlines = CallDeadlines(), max_users: int = MAX_KEYS
    ) -> None:
        self.lines = RefusalLines(deadlines.lines_seconds)
        self._journal = journal
        self._deadlines = deadlines
        self._windows: dict[str, Windows[Key, _Window]] = {
            event_type: Windows(_Window, _of_others, deadlines.refusal_seconds, max_users) for event_type in _LINES
        }
        self._telling = trio.Lock()

    def __len__(self) -> int:
        return sum(map(len, self._windows.values()))

    async def note(self, refusal: RefusedRequest) -> bool:
        """Count one; True for one that has an event of its own, which is written then. Raises nothing."""
        key, window, _ = self._windows[refusal.event_type].of((refusal.uid, refusal.error.code))
        window.add(refusal)
        has_own = window.told < refusal.own_events
        if has_own:
            window.told += 1
            await self._tell(refusal.event_type, key, window, refusal.error.status, has_own=True)
        return has_own

    async def run(self) -> None:
        """Round after round, until cancelled."""
        while True:
            await trio.sleep(self._deadlines.upkeep_seconds)
            await self.tell_due(trio.current_time())

    async def tell_due(self, now: float = float("inf")) -> None:
        """Tell of what was counted in minutes that have passed; by default of everything. Raises nothing.

        Returns when a round of another task has ended, too: a process that ends then leaves behind nothing it took.
        """
        async with self._telling:
            self.lines.tell_due(now)
            for event_type, windows in self._windows.items():
                for key, window in windows.due(now):
                    await self._tell(event_type, key, window, GateError(key[1]).status)

    async def _tell(
        self, event_type: str, key: Key, window: _Window, status: int, *, has_own: bool = False
    ) -> None:  # fmt: skip
        uid, code = key
        count, window.count = window.count, 0  # what comes while this waits is the next event's
        common, window.common = window.common or {}, None
        of_many = uid == OTHERS
        attempts = {"count": count} | ({"is_many_users": True} if of_many else _uid(uid) | window.who)
        fields = {"principal": None if uid is None or of_many else f"uid:{uid}"} | common
        try:
            with trio.CancelScope(shield=True):  # bounded by the notary's own deadline
                event = self._journal.event(
                    event_type, decision="error" if status >= 500 else "deny", error_code=code, attempts=attempts,
                    **fields,
                )  # fmt: skip
                await self._journal.refused(event)
        except GateError as error:
            _, window, _ = self._windows[event_type].of(key)  # it may have been forgotten meanwhile
            window.count += count
            window.merge(common)
            log.warning("refusals left no event", code=error.code, cause=error.cause, refused_with=code, **attempts)
        else:
            if event_type != ACTION_CALL or not has_own:  # a call has its own line
                log.warning(_LINES[event_type], refused_with=code, trace_id=event.trace_id, **attempts)


def _uid(uid: int | None) -> dict[str, Any]:
    return {} if uid is None else {"uid": uid}


def _of_others(key: Key) -> Key:
    return OTHERS, key[1]
