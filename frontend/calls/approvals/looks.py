"""What operators are shown of held calls, made once by each front: a console looks every few seconds.

A large call is worked on beside the event loop, by turns of the principals whose calls they are, so that no other
request waits for it. Owns a bounded number of what was made. Guarantees that it is of the stored call as it is now:
a body that has changed is looked at anew.
"""

from collections import OrderedDict
from functools import partial

from frontend.calls.approvals.record import ShownHold, whole_of
from frontend.schemas.large_bodies import LARGE_BYTES, LargeBodies
from ipc.store import ApprovalRecord

MOST_KEPT = 8
MOST_KEPT_CHARACTERS = 16 * 1024 * 1024
"""Of bodies. What is shown of one takes up to seven times as much."""

_SHOWN = ("session_id", "action_id", "request_hash", "created_at", "expires_at", "body")
"""Fields of a record that what is shown is made of."""


class Looks:
    """Makes and keeps them."""

    def __init__(self) -> None:
        self._bodies = LargeBodies()
        self._kept: OrderedDict[str, tuple[ApprovalRecord, ShownHold]] = OrderedDict()
        """The last one looked at is last."""

    async def whole(self, approval: ApprovalRecord) -> ShownHold:
        """What is shown of a hold that has not ended. Raises GateError: plan_integrity, and rate_limit_exceeded where
        its turn does not come in time."""
        if len(approval.body) <= LARGE_BYTES:
            return whole_of(approval)
        if (known := self._known(approval)) is not None:
            return known
        owners = (approval.principal, approval.session_id)
        whole = await self._bodies.run(len(approval.body), owners, partial(whole_of, approval))
        self._kept[approval.approval_id] = (approval, whole)
        self._kept.move_to_end(approval.approval_id)
        while len(self._kept) > MOST_KEPT or self._characters() > MOST_KEPT_CHARACTERS:
            self._kept.popitem(last=False)
        return whole

    def _known(self, approval: ApprovalRecord) -> ShownHold | None:
        if approval.approval_id not in self._kept:
            return None
        seen, whole = self._kept[approval.approval_id]
        if any(getattr(seen, name) != getattr(approval, name) for name in _SHOWN):
            return None
        self._kept.move_to_end(approval.approval_id)
        return whole

    def _characters(self) -> int:
        return sum(len(approval.body) for approval, _ in self._kept.values())
