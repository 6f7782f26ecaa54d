"""Evidence that has no receipt: refusals and holds of calls, leases, operators' acts, the gateway's own life.

Each event is durable before what it records is answered. A call that ran leaves its event with its receipt
(frontend/calls/execution.py).
"""

from dataclasses import dataclass
from typing import Any

from frontend.auth.authentication import OperatorCaller
from frontend.auth.identity import Identity
from frontend.auth.lease import IssuedLease
from frontend.calls.record import CallRecord
from frontend.clock import Clock
from frontend.errors import GateError
from frontend.evidence.events import AuditEvent
from frontend.evidence.ledger import EvidenceRefused, Ledger, LedgerUnavailable
from frontend.identifiers import new
from frontend.policy.question import clean_reason
from frontend.telemetry.logs import log
from frontend.telemetry.weakened import Weakened


@dataclass(frozen=True, slots=True)
class Journal:
    """Every method raises GateError: evidence_persistence_failed when the ledger does not take it, clock_error."""

    clock: Clock
    weakened: Weakened
    ledger: Ledger

    async def decided(self, record: CallRecord, decision: str, **found: Any) -> None:
        """The one event of a call's decision."""
        await self._write(record.event(self.clock, decision, **_bounded(found)))
        record.is_decided = True

    async def noted(self, record: CallRecord, event_type: str, decision: str, **found: Any) -> None:
        """Something else that happened to a call."""
        await self._write(record.event(self.clock, decision, event_type=event_type, **_bounded(found)))

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

    async def lease_refused(self, error: GateError, uid: int | None) -> None:
        """Somebody may not have the lease they asked for: a user of this host where `uid` is known."""
        log.info("a lease was refused", code=error.code, cause=error.cause)
        await self._append(
            "LeaseIssued", decision="error" if error.status >= 500 else "deny", error_code=error.code,
            reason=error.cause, principal=None if uid is None else f"uid:{uid}",
        )  # fmt: skip

    async def own(self, event_type: str, **found: Any) -> None:
        """Something in the gateway's own life."""
        await self._append(event_type, **({"principal": "gateway"} | found))

    async def _append(self, event_type: str, *, decision: str = "allow", **found: Any) -> None:
        fields = self.weakened.fields() | _bounded(found)
        event = AuditEvent(
            event_id=new("evt_"),
            event_type=event_type,
            timestamp=self.clock.iso(),
            trace_id=new("trc_"),
            decision=decision,
            **{name: value for name, value in fields.items() if value is not None},
        )
        await self._write(event)

    async def _write(self, event: AuditEvent) -> None:
        try:
            await self.ledger.append(event)
        except (LedgerUnavailable, EvidenceRefused) as error:
            raise GateError("evidence_persistence_failed", cause=str(error)) from None
        except ValueError as error:
            log.exception("an event that can't be written", event_type=event.event_type)
            raise GateError("evidence_persistence_failed", cause=type(error).__name__) from None


def _bounded(found: dict[str, Any]) -> dict[str, Any]:
    """Texts that others wrote are cut and cleaned: no cause may be too long, or too strange, to be evidence."""
    for name in ("reason", "deny_reason"):
        if isinstance(found.get(name), str):
            found[name] = clean_reason(found[name])
    return found
