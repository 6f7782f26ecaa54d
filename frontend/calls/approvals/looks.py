"""The view of each held call for operators, made once by each front: a console asks for it every few seconds.

A large call is worked on beside the event loop, by turns of the principals whose calls they are, so that no other
request waits for it. Keeps a bounded number of views. Guarantees that a view shows the stored call as it is now: a
changed body gets a new one.
"""

from collections import OrderedDict
from functools import partial

from frontend.calls.approvals.record import ShownHold, whole_of
from frontend.schemas.large_bodies import LARGE_BYTES, LargeBodies
from ipc.backends.store import ApprovalRecord

MOST_KEPT = 8
MOST_KEPT_CHARACTERS = 16 * 1024 * 1024
"""Sum over the bodies of the views kept; a view takes up to seven times as much as its body."""

_SHOWN = ("session_id", "action_id", "request_hash", "created_at", "expires_at", "body")
"""Fields of a record from which its view is made."""


class Looks:
    """Makes the views and keeps the last ones."""

    def __init__(self) -> None:
        self._bodies = LargeBodies()
        self._kept: OrderedDict[str, tuple[ApprovalRecord, ShownHold]] = OrderedDict()
        """The last one looked at is last."""

    async def whole(self, approval: ApprovalRecord) -> ShownHold:
        """The view of a hold. Raises GateError: plan_integrity, and rate_limit_exceeded where
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
