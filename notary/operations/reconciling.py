"""StoreChanged: the store is not the one that the ledger remembers, or has lost its data.

SECURITY: no front may ask it. It is unknown which proofs were used, which calls were spent and which sessions were
revoked, so that every earlier lease ends.
"""

from ipc.evidence.events import ADMIN_REVOKE_ALL, AuditEvent
from ipc.operations.operation import Operation
from ipc.texts.identifiers import new
from notary.store.marker import read_marker
from notary.units.performing import performs
from notary.units.transaction import Transaction


class StoreChanged(Operation[bool], frozen=True):
    """Asked by the notary itself. The answer says whether it has ended the leases.

    `instead_of`: the marker of the store that was lost; once a shared ledger remembers another one, a gateway beside
    this one has ended them."""

    why: str
    instead_of: str | None = None


@performs(StoreChanged, writes=True)
def follow_store(unit: Transaction, asked: StoreChanged) -> bool:
    """See StoreChanged. How often others raised the epoch meanwhile is not known: once a second at most since 1970."""
    if asked.instead_of is not None and read_marker(unit.connection) not in (None, asked.instead_of):
        return False
    previous, current = unit.renew_store(int(unit.now))
    event = AuditEvent(event_type=ADMIN_REVOKE_ALL, trace_id=new("trc_"), principal="gateway", decision="allow")
    unit.append(
        event, reason=f"the epoch was raised from {previous} to {current}: {asked.why}",
        change={"previous_epoch": previous, "current_epoch": current},
    )  # fmt: skip
    return True
