"""StoreChanged: the store is not the one that the ledger remembers, or has lost its data.

SECURITY: no operation of a front. Which proofs were used, what was spent and what was revoked is not known any more: so
every lease of before ends.
"""

from ipc.events import ADMIN_REVOKE_ALL, AuditEvent
from ipc.identifiers import new
from ipc.messages import Operation
from notary.unit import Unit


class StoreChanged(Operation, frozen=True):
    """Made by the notary itself. Answers None."""

    why: str


def follow_store(unit: Unit, asked: StoreChanged) -> None:
    """See StoreChanged. How often others raised the epoch meanwhile is not known: once a second at most since 1970."""
    previous, current = unit.renew_store(int(unit.now))
    event = AuditEvent(event_type=ADMIN_REVOKE_ALL, trace_id=new("trc_"), principal="gateway", decision="allow")
    unit.append(
        event, reason=f"the epoch was raised from {previous} to {current}: {asked.why}",
        change={"previous_epoch": previous, "current_epoch": current},
    )  # fmt: skip
