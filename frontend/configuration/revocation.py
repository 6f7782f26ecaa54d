"""Revocation of everything at once, or of one session.

Revoking everything raises the epoch, which ends all earlier leases, grants and holds. Guarantees that no earlier call
is dispatched once the operator has the answer, since the notary opens no call of an earlier epoch; calls that a worker
has by then run to their end. Epoch and event are one transaction. A lost or restored store revives no lease: the epoch
is in evidence.
"""

import msgspec
import trio

from frontend.auth.authentication import OperatorCaller
from frontend.calls.approvals.expiry import Expiry
from frontend.calls.approvals.rights import LostRights
from frontend.calls.audit_writer import AuditWriter
from frontend.deadlines import ConfigurationDeadlines
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import NotaryRefused, NotaryUnavailable, notary_errors_as
from frontend.notary.in_force import NotaryFacts
from frontend.telemetry.logs import log
from ipc.evidence.events import ADMIN_REVOKE_ALL, SESSION_REVOKED
from ipc.evidence.records import EventQuery
from ipc.operations.evidence import QueryEvents
from ipc.operations.leases import ReadEpoch, Revoke, RevokedEpoch, RevokeSession, SessionRevocation

KNOWN_BY = 100
"""Events that are looked at for the highest epoch: the clock may have been set between them."""


class _Change(msgspec.Struct):
    current_epoch: int = 0


class _SeenRights(msgspec.Struct):
    change: _Change = msgspec.field(default_factory=_Change)


class Revocation(msgspec.Struct, frozen=True):
    """Raises the epoch, and sees to it that it never falls."""

    known: NotaryFacts
    journal: AuditWriter
    notary: NotaryClient
    expiry: Expiry
    rights: LostRights
    deadlines: ConfigurationDeadlines = ConfigurationDeadlines()

    async def epoch(self) -> int:
        """The epoch in force. Raises GateError epoch_store_unavailable."""
        with notary_errors_as("epoch_store_unavailable"):
            return await self.notary.ask(ReadEpoch())

    async def revoke_all(self, operator: OperatorCaller) -> tuple[int, int]:
        """(previous, current) epoch. Raises GateError epoch_store_unavailable: it may or may not have risen, ask
        again."""
        revoked = await self._raise(Revoke(self.journal.operator_event(ADMIN_REVOKE_ALL, operator)))
        log.warning("all earlier leases, grants and held plans are revoked", epoch=revoked.current, by=operator.name)
        await self._end_holds()
        return revoked.previous, revoked.current

    async def revoke_session(self, session_id: str, operator: OperatorCaller) -> SessionRevocation:
        """End one session. Raises GateError session_not_found, too_many_revoked_sessions, evidence_store_unavailable.

        Every front knows of it before the answer goes out: the notary tells them first.
        """
        asked = RevokeSession(session_id, self.journal.operator_event(SESSION_REVOKED, operator))
        with notary_errors_as("evidence_store_unavailable"):
            revoked = await self.notary.ask(asked)
        if revoked is None:
            raise GateError("session_not_found")
        if revoked.is_full:
            raise GateError("too_many_revoked_sessions")
        if not revoked.was_revoked:
            log.warning("a session is revoked", session_id=session_id, principal=revoked.principal, by=operator.name)
            await self._end_holds()
        return revoked

    async def end_lost_rights(self) -> None:
        """End the calls held under revoked rights, as revoke-all does. Raises nothing: after a failure the front tries
        again in its rounds, and before it approves anything."""
        try:
            await self.rights.end()
        except GateError as error:
            log.warning("calls held under a revoked right have not ended yet", cause=error.cause)
        else:
            await self._end_holds()

    async def _end_holds(self) -> None:
        """Write the event of each revoked hold and give its call back, for a limited time; the rounds of every front
        end the rest. None of these holds can be approved any more."""
        with trio.move_on_after(self.deadlines.end_holds_seconds):
            try:
                await self.expiry.expire()
            except (NotaryUnavailable, NotaryRefused, GateError) as error:
                log.warning("revoked holds are not ended yet", cause=str(error))

    async def catch_up(self) -> None:
        """Before the first request: raise an epoch that is below what evidence tells, beyond it, so that every lease of
        before is dead. Raises GateError epoch_store_unavailable, NotaryUnavailable."""
        query = EventQuery(event_type=ADMIN_REVOKE_ALL, decision="allow", limit=KNOWN_BY)
        found = await self.notary.ask(QueryEvents(query))
        known = max(map(_epoch_of, found.events), default=0)
        if await self.epoch() >= known:
            return
        event = self.journal.own_event(ADMIN_REVOKE_ALL)
        revoked = await self._raise(Revoke(event, known, f", since the store had lost {known}"))
        log.error("the store had lost the epoch: all earlier leases are revoked", lost=known, was=revoked.previous)

    async def _raise(self, asked: Revoke) -> RevokedEpoch:
        with notary_errors_as("epoch_store_unavailable"):
            revoked = await self.notary.ask(asked)
        self.known.note_epoch(revoked.current)
        return revoked


def _epoch_of(event: bytes) -> int:
    try:
        return msgspec.json.decode(event, type=_SeenRights).change.current_epoch
    except ValueError:  # the ledger was changed: `verify` reports that, and it is no reason not to start
        return 0
