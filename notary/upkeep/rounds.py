"""Periodic work between two units: follow key files, settle the journal, forget expired rows, a few at a time."""

import contextlib
import time
from collections.abc import Callable

from ipc.operations.keys import FollowKeys
from ipc.process.clock import ClockWrong
from ipc.process.lasting_problem import LastingProblem
from ipc.process.logs import log
from notary.database import DatabaseGone
from notary.ledger.settling import SETTLED_AT, settle_all
from notary.operations.standing import EndStanding
from notary.state import NotaryState
from notary.store.contract import StoreGone
from notary.store.keeping import KEEP_ENDED_SECONDS, TRIMMED_AT_ONCE, bounds_at
from notary.store.sessions import living
from notary.units.tasks import Task


class Upkeep:
    """Rounds of one notary."""

    def __init__(self, state: NotaryState, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._monotonic = monotonic
        self._next = monotonic() + state.limits.round_seconds
        self._has_more = self._has_due = self._follows_keys = False
        self._seen = -1
        self._settle_at = self._retry_at = 0.0
        self._cut_at = monotonic()
        self._unsettled_problem, self._wal_problem, self._sweep_problem = (LastingProblem() for _ in range(3))
        state.has_erased = state.has_erased or state.database.has_old_frames

    def patience(self) -> float:
        """Seconds until the next round, or until the journal is settled."""
        if self._has_more:
            return 0.0
        until = min(self._next, max(self._settle_at, self._retry_at)) if self._holds_entries() else self._next
        return max(0.0, until - self._monotonic())

    def due(self) -> Task | None:
        """Make a round if it is time. Return the task that it leads to, for a unit of its own."""
        if self._holds_entries():
            self._settle_in_time()
        if not self._has_more and self._monotonic() < self._next:
            return None
        self._next = self._monotonic() + self._state.limits.round_seconds
        self._sweep()
        self._cut_wal()
        has_news = self._state.signers.has_news()
        # In turn, so that a task that fails in every round keeps no other one waiting.
        self._follows_keys = has_news and not (self._has_due and self._follows_keys)
        if self._follows_keys:
            return Task("", 0, FollowKeys())
        return Task("", 0, EndStanding()) if self._has_due else None

    def close(self) -> None:
        """Leave nothing in the journal, if that can be."""
        if self._state.unsettled is not None:
            with contextlib.suppress(DatabaseGone):
                settle_all(self._state.database, self._state.unsettled)

    def _holds_entries(self) -> bool:
        return self._state.unsettled is not None and bool(self._state.unsettled.entries)

    def _settle_in_time(self) -> None:
        """Settle when SETTLED_AT slots of the journal are in use, or when no unit has come for a while."""
        unsettled, now = self._state.unsettled, self._monotonic()
        if unsettled is None:
            return
        if unsettled.number != self._seen:
            self._seen, self._settle_at = unsettled.number, now + self._state.limits.quiet_seconds
        if now < self._retry_at or (now < self._settle_at and unsettled.used < SETTLED_AT):
            return
        try:
            settle_all(self._state.database, unsettled)
        except DatabaseGone as error:
            # SECURITY: evidence that can't come to its tables stops every call: the next unit settles, or fails.
            self._state.forget()
            self._state.is_failing = True
            self._retry_at = now + self._state.limits.round_seconds
            if self._unsettled_problem.is_new(str(error)):
                log.warning("the journal could not be settled", cause=str(error))
        else:
            self._unsettled_problem.end()

    def _cut_wal(self) -> None:
        """Requests of approvals that have ended leave the WAL, too; and one that a reader made long is cut."""
        has_erased = self._state.has_erased and self._monotonic() >= self._cut_at
        if not has_erased and not self._state.database.has_long_wal:
            return
        try:
            if self._state.database.cut_wal():
                self._state.has_erased = False
                self._cut_at = self._monotonic() + self._state.limits.wal_seconds
        except DatabaseGone as error:
            if self._wal_problem.is_new(str(error)):
                log.warning("the write-ahead log could not be cut", cause=str(error))
        else:
            self._wal_problem.end()

    def _sweep(self) -> None:
        try:
            now = self._state.clock.now()
            if self._state.revoked is not None and self._state.stores is None:
                self._state.revoked = living(self._state.revoked, now)
            # No flush, for which calls would wait: a crash may bring back what is over, and it is forgotten again.
            with self._state.database.unit(writes=self._state.stores is None, is_durable=False) as connection:
                store = self._state.open_store(connection)
                has_more = store.sweep(now, now - KEEP_ENDED_SECONDS)
                settings = self._state.settings
                trimmed = store.trim_kept(bounds_at(now, settings.approvals))
                outputs = store.keyed.trim(now - settings.limits.idempotency_seconds)
                self._has_due = bool(store.standing.due(now))
            self._has_more = has_more or TRIMMED_AT_ONCE in (trimmed, outputs)
            self._state.has_erased = self._state.has_erased or trimmed + outputs > 0
        except (DatabaseGone, StoreGone, ClockWrong) as error:
            self._has_more = self._has_due = self._follows_keys = False
            if self._sweep_problem.is_new(str(error)):
                log.warning("what is over could not be forgotten", cause=str(error))
        else:
            self._sweep_problem.end()
