"""Operations on holds: calls that wait for the approval of an operator."""

import msgspec

from ipc.backends.store import ApprovalRecord
from ipc.caps import CapUse
from ipc.evidence.events import AuditEvent
from ipc.evidence.kept_values import KeptValues
from ipc.operations.calls import CallKey, ProofRecord, Refusal, RepeatedCall
from ipc.operations.operation import FrontOperation
from ipc.operations.standing import Lifted


class HoldInForce(msgspec.Struct, frozen=True, tag=True):
    """The hold that is in force for the call."""

    approval: ApprovalRecord
    is_repeated: bool


class Hold(FrontOperation[HoldInForce | Refusal | RepeatedCall | Lifted], frozen=True):
    """Use the proof, debit the budget, store the hold and write its event: all or nothing.

    If the same call is held already, the answer is that hold; an event is written and nothing is debited.
    """

    event: AuditEvent
    approval: ApprovalRecord
    epoch: int
    limit: int
    """Pending holds that one session may have."""
    proof: ProofRecord | None = None
    has_budget: bool = False
    calls_per_hour: int | None = None
    """As in Open."""
    kept: KeptValues | None = None
    """As in Open."""
    caps: tuple[CapUse, ...] = ()
    """The caps that the call counts for, as its hold's body has them. They deny it, and hold nothing that is held."""
    idempotency: CallKey | None = None
    may_be_lifted: bool = False
    """A standing approval that covers the call lets it run: then nothing is held."""


class MoveHold(FrontOperation[ApprovalRecord | None], frozen=True):
    """Compare and swap the state of an approval, write its event, and give its call back: all or nothing.

    Exactly one of any number of callers moves it. A claim succeeds only before the hold's time is over, an expiry only
    afterwards; the notary's clock decides both. The answer is the approval after the move, or None.
    """

    approval_id: str
    from_state: str
    to_state: str
    outcome: str
    holder: str | None = None
    event: AuditEvent | None = None
    refunds: bool = False
    kept: KeptValues | None = None
    """As in Open: for the event of a call that ends so."""


class VoidHolds(FrontOperation[None], frozen=True):
    """End these pending approvals: the right to their calls was revoked. Approvals that are not pending stay as they
    are."""

    approval_ids: tuple[str, ...]


class GetHold(FrontOperation[ApprovalRecord | None], frozen=True):
    """Read one approval as it is stored. The whole body of an ended one is there as long as it is kept. Without
    `with_body` the body is not read, and empty."""

    approval_id: str
    with_body: bool = True


class ListedHolds(msgspec.Struct, frozen=True):
    """`total` counts all that match. The bodies hold only the fields that a list shows."""

    approvals: list[ApprovalRecord]
    total: int


class ListHolds(FrontOperation[ListedHolds], frozen=True):
    """List the newest approvals in these states (None: all)."""

    states: tuple[str, ...] | None
    limit: int
    principal: str | None = None
    action_id: str | None = None
    before: float | None = None
    """Only those that were created before this time (Unix seconds)."""
    in_turns: bool = False
    """The newest of each principal, then the second of each, and so on: no principal hides another's."""


class DueHolds(FrontOperation[list[ApprovalRecord]], frozen=True):
    """List pending approvals whose time is over or whose epoch is an older one, oldest first: at most `limit`, and as
    many as fit into one answer."""

    limit: int


class OrphanedHolds(FrontOperation[list[ApprovalRecord]], frozen=True):
    """List claimed approvals that none of these fronts holds, oldest first: as many as fit into one answer."""

    live_holders: tuple[str, ...]


class UnsettledHolds(FrontOperation[list[ApprovalRecord]], frozen=True):
    """List approvals that the asking front has claimed, oldest first, except the ids that its tasks are settling
    (`at_work`): as many as fit into one answer."""

    at_work: tuple[str, ...]
