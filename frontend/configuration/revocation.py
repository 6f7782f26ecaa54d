"""Revoking everything at once: the epoch rises, and every lease, grant and held plan of before is dead.

Guarantees that nothing which began before is dispatched once the operator has the answer; calls that a worker has by
then run to their end. The epoch rises before its evidence: a ledger that fails must not keep stolen leases alive. What
has no evidence is answered as such, and is in force all the same. A store that was lost, or is a copy of before, brings
nothing back: evidence knows how high the epoch was.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
import trio

from frontend.auth.authentication import OperatorCaller
from frontend.auth.epochs import Epochs
from frontend.calls.journal import Journal
from frontend.errors import GateError
from frontend.evidence.events import ADMIN_REVOKE_ALL
from frontend.evidence.ledger import EventQuery, Ledger
from frontend.telemetry.logs import log

KNOWN_BY = 100
"""Events that are looked at for the highest epoch: the clock may have been set between them."""


class _Change(msgspec.Struct):
    current_epoch: int = 0


class _Seen(msgspec.Struct):
    change: _Change = msgspec.field(default_factory=_Change)


@dataclass(frozen=True, slots=True)
class Revocation:
    """Raises the epoch, and sees to it that it never falls."""

    epochs: Epochs
    journal: Journal
    ledger: Ledger

    async def revoke_all(self, operator: OperatorCaller) -> tuple[int, int]:
        """(previous, current) epoch. Raises GateError.

        epoch_store_unavailable: it may or may not have risen, ask again. evidence_persistence_failed, clock_error: it
        has risen, and no event says so.
        """
        with trio.CancelScope(shield=True):  # what has begun is finished; each wait has its own deadline
            try:
                previous, current = await self.epochs.raise_by_one()
            except GateError as error:
                await self._failed(operator, error)
                raise
            log.warning("every lease, grant and held plan of before is revoked", epoch=current, by=operator.name)
            try:
                await self.journal.operator_act(ADMIN_REVOKE_ALL, operator, **_found(previous, current))
            finally:
                await self.epochs.older_grants_done(current)
        return previous, current

    async def catch_up(self) -> None:
        """Before the first request: raise an epoch that is below what evidence tells, beyond it, so that every lease of
        before is dead. Raises GateError epoch_store_unavailable, LedgerUnavailable."""
        events = await self.ledger.query(EventQuery(event_type=ADMIN_REVOKE_ALL, decision="allow", limit=KNOWN_BY))
        known = max(map(_epoch_of, events), default=0)
        if await self.epochs.current() >= known:
            return
        previous, current = await self.epochs.raise_by_one(above=known)
        log.error("the store had lost the epoch: every lease of before is revoked", lost=known, found=previous)
        try:
            found = _found(previous, current, f", since the store had lost {known}")
            await self.journal.own(ADMIN_REVOKE_ALL, **found)
        except GateError as error:
            log.error("an epoch that was raised left no event", code=error.code, cause=error.cause)

    async def _failed(self, operator: OperatorCaller, error: GateError) -> None:
        found = {"decision": "error", "error_code": error.code, "reason": error.cause}
        try:
            await self.journal.operator_act(ADMIN_REVOKE_ALL, operator, **found)
        except GateError as problem:
            log.error("a revocation that failed left no event", cause=problem.cause)


def _found(previous: int, current: int, why: str = "") -> dict[str, Any]:
    change = {"previous_epoch": previous, "current_epoch": current}
    return {"reason": f"the epoch was raised from {previous} to {current}{why}", "change": change}


def _epoch_of(event: bytes) -> int:
    try:
        return msgspec.json.decode(event, type=_Seen).change.current_epoch
    except ValueError:  # somebody changed the ledger: that is for `verify` to say, and no reason not to start
        return 0
