"""Audit events that belong to no call: leases, operators' acts, the gateway's own life.

Each is durable before what it records is answered. Calls leave theirs through frontend/case.py.
"""

from dataclasses import dataclass
from typing import Any

from frontend.auth.identity import Identity
from frontend.auth.lease import IssuedLease
from frontend.authentication import OperatorCaller
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import Ledger, LedgerUnavailable
from frontend.identifiers import new
from frontend.telemetry.marks import Marks


@dataclass(frozen=True, slots=True)
class Journal:
    """Every method raises GateError evidence_persistence_failed when the ledger does not take the event."""

    clock: Clock
    marks: Marks
    ledger: Ledger

    async def operator_act(self, event_type: str, operator: OperatorCaller, **found: Any) -> None:
        """An operator did something that is audited."""
        await self._append(
            event_type, principal=f"operator:{operator.name}", identity_method="operator",
            operator_sender_binding=operator.jkt, operator_proof_jti=operator.proof_jti, **found,
        )  # fmt: skip

    async def lease_issued(self, lease: IssuedLease, identity: Identity) -> None:
        """A lease is about to be handed out."""
        await self._append(
            "LeaseIssued", principal=identity.principal, owner=identity.owner, session_id=lease.session_id,
            lease_jti=lease.lease_jti, identity_method=identity.method,
        )  # fmt: skip

    async def own(self, event_type: str, **found: Any) -> None:
        """Something in the gateway's own life."""
        await self._append(event_type, **({"principal": "gateway"} | found))

    async def _append(self, event_type: str, *, decision: str = "allow", **found: Any) -> None:
        event = AuditEvent(
            event_id=new("evt_"),
            event_type=event_type,
            timestamp=self.clock.iso(),
            trace_id=new("trc_"),
            decision=decision,
            **{name: value for name, value in (self.marks.fields() | found).items() if value is not None},
        )
        try:
            await self.ledger.append(event)
        except LedgerUnavailable as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None
