"""Whether one more approval may wait: by its session, by its principal, and in all.

Guarantees that no principal fills what all share: each has a part of its own by number and by bytes, and the last
quarter of the whole is for those of whom little waits. Counted where the hold is stored, so that fronts can't miscount.
"""

from typing import Final, NamedTuple

from ipc.backends.store import ApprovalRecord
from notary.store.contract import Moment, Waiting
from notary.units.transaction import Transaction

FEW: Final = 10
"""Little waits of a principal: a tenth of its part, or nothing."""


class Full(NamedTuple):
    """Which bound is reached, and when the first of what fills it expires."""

    cause: str
    free_at: float | None


class _Bound(NamedTuple):
    """How many, and how many bytes of bodies."""

    number: int
    bytes: int

    def takes(self, waiting: Waiting, size: int) -> bool:
        """True with room for one more of this size."""
        return waiting.number < self.number and waiting.bytes + size <= self.bytes


def what_is_full(unit: Transaction, approval: ApprovalRecord, moment: Moment, of_session: int) -> Full | None:
    """The first bound that has no room for this approval; None: it may wait."""
    settings, size, store = unit.state.settings.approvals, len(approval.body.encode()), unit.store
    session = store.waiting_of_session(approval.session_id, moment)
    if session.number >= of_session:
        return Full(f"{session.number} holds of the session wait", session.free_at)
    part = _Bound(settings.max_pending_per_principal, settings.max_pending_bytes_per_principal)
    own = store.waiting_of(approval.principal, moment)
    if not part.takes(own, size):
        return Full(f"{own.number} holds of the principal wait, with {own.bytes} bytes", own.free_at)
    whole = _Bound(settings.max_pending, settings.max_pending_bytes)
    every = store.waiting(moment)
    few = _Bound(part.number // FEW, part.bytes // FEW)
    shared = _Bound(whole.number - whole.number // 4, whole.bytes - whole.bytes // 4)
    is_small = own.number == 0 or few.takes(own, size)
    if not (whole if is_small else shared).takes(every, size):
        return Full(f"{every.number} holds of all wait, with {every.bytes} bytes", every.free_at)
    return None
