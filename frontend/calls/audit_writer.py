"""Evidence that has no receipt: refusals of calls, leases, operators' acts, the gateway's own life.

Each event is durable before what it records is answered. A call that ran leaves its event with its receipt
(frontend/calls/execution.py).
"""

from typing import Any

import msgspec

from frontend.auth.authentication import OperatorCaller
from frontend.auth.identity import Identity
from frontend.errors import GateError
from frontend.notary.client import NotaryClient
from frontend.notary.errors import notary_errors_as
from frontend.telemetry.logs import trace_now
from frontend.telemetry.weakened import Weakened
from ipc.evidence.events import ACTION_CALL, LEASE_ISSUED, AuditEvent
from ipc.operations.calls import Refuse
from ipc.operations.evidence import WriteEvent
from ipc.texts.foreign_texts import clean_reason


class AuditWriter(msgspec.Struct, frozen=True):
    """Every writing method raises GateError: evidence_store_unavailable when the notary can't write, clock_error."""

    weakened: Weakened
    notary: NotaryClient

    async def operator_act(
        self, event_type: str, operator: OperatorCaller, *, is_done: bool = False, **fields: Any
    ) -> None:  # fmt: skip
        """An operator did something that is audited. `is_done`: it is in force whether or not there is evidence of it,
        which is evidence_persistence_failed without."""
        code = "evidence_persistence_failed" if is_done else "evidence_store_unavailable"
        await self._write(self.operator_event(event_type, operator, **fields), code)

    def operator_event(self, event_type: str, operator: OperatorCaller, **fields: Any) -> AuditEvent:
        """The event of what an operator did."""
        return self.event(
            event_type, principal=f"operator:{operator.name}", identity_method="operator",
            operator_sender_binding=operator.jkt, operator_proof_jti=operator.proof_jti, **fields,
        )  # fmt: skip

    async def lease_refused(self, error: GateError, identity: Identity) -> None:
        """A lease was refused to a caller that is known by name."""
        event = self.event(
            LEASE_ISSUED, decision="error" if error.status >= 500 else "deny", error_code=error.code,
            reason=error.cause, **identity.told,
        )  # fmt: skip
        await self._write(event)

    async def own(self, event_type: str, **fields: Any) -> None:
        """Something in the gateway's own life."""
        await self._write(self.own_event(event_type, **fields))

    def own_event(self, event_type: str, **fields: Any) -> AuditEvent:
        """The event of something in the gateway's own life."""
        return self.event(event_type, **({"principal": "gateway"} | fields))

    def event(self, event_type: str, *, decision: str = "allow", **fields: Any) -> AuditEvent:
        """An event with these fields; the notary completes it."""
        known = self.weakened.fields() | bounded(fields)
        return AuditEvent(
            event_type=event_type,
            trace_id=trace_now(),
            decision=decision,
            **{name: value for name, value in known.items() if value is not None},
        )

    async def previewed(self, event: AuditEvent) -> None:
        """An agent or an operator asked for a preview."""
        await self._write(event)

    async def refused(self, event: AuditEvent) -> None:
        """Refusals that an event stands for, none of which has used a proof."""
        await self._write(event)

    async def _write(self, event: AuditEvent, code: str = "evidence_store_unavailable") -> None:
        with notary_errors_as(code):
            if event.event_type == ACTION_CALL:
                await self.notary.ask(Refuse(event))
            else:
                await self.notary.ask(WriteEvent(event))


def bounded(fields: dict[str, Any]) -> dict[str, Any]:
    """Texts that others wrote are cut and cleaned: no cause may be too long, or too strange, to be evidence."""
    for name in ("reason", "deny_reason"):
        if isinstance(fields.get(name), str):
            fields[name] = clean_reason(fields[name])
    return fields
