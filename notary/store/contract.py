"""The interface of the store: proofs, budgets, quotas, approvals and the epoch.

Every backend gives the same answers (tests/notary/store has one suite for all). A `Store` lives as long as one unit:
a unit sees its own changes at once; others see them when the unit is durable, all or none.
"""

from collections.abc import Collection
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from ipc.approvals import CLAIMED, EXPIRED, PENDING
from ipc.backends.store import ApprovalRecord, Budget
from ipc.operations.holds import ListedHolds, ListHolds
from notary.store.call_keys import KeyedCalls
from notary.store.caps import CapCounts
from notary.store.keeping import KeptBounds
from notary.store.standing import StandingStore

TOLD_CHARACTERS = 4 * 1024 * 1024
"""Characters of bodies in one answer, so that it fits a frame of the channel."""


class StoreGone(Exception):
    """A store that does not lie in the ledger can't be used now. `part`: which part of it was asked, where known."""

    part: str | None = None


class Moment(NamedTuple):
    """The time and the epoch in force, which decide whether a pending approval still waits."""

    now: float
    epoch: int


class LastSession(NamedTuple):
    """A session without budgets. `expires_at`: when its last lease ends (Unix seconds)."""

    session_id: str
    epoch: int
    expires_at: float


class Waiting(NamedTuple):
    """How many wait, with how many bytes of bodies, and when the first of them expires."""

    number: int
    bytes: int
    free_at: float | None


class Store(Protocol):
    """The store within one unit. Every method may raise DatabaseGone or StoreGone."""

    @property
    def is_in_ledger(self) -> bool:
        """True where changes are part of the ledger's transaction, and the unit's entry in the journal records
        proofs."""
        ...

    @property
    def caps(self) -> CapCounts:
        """The amounts that caps count."""
        ...

    @property
    def keyed(self) -> KeyedCalls:
        """Calls that were made under a key."""
        ...

    @property
    def standing(self) -> StandingStore:
        """Standing approvals, and the calls that they were used for."""
        ...

    # ----------------------------------------------------------------- proofs and epoch

    def foresee(self, session_ids: Collection[str]) -> None:
        """The budgets of these sessions will be asked for. Raises nothing."""
        ...

    def apply(self, number: int) -> None:
        """Do what was done here: just before the commit, and only where the store is not in the ledger. `number` is
        that of the unit. Raises what has the unit performed again, or nothing of it done."""
        ...

    def confirm(self) -> None:
        """The ledger has the unit."""
        ...

    def keep_doubt(self, last: int) -> None:
        """The ledger is about to give the number after `last` to this unit: have it remember what may have been done
        here under that number by another one. Only where the store is not in the ledger."""
        ...

    def use_proof(self, key: str, now: float) -> bool:
        """Record a proof. False when it was used already."""
        ...

    def look(self) -> None:
        """Find out whether proofs can be used."""
        ...

    def epoch(self) -> int:
        """The epoch in force."""
        ...

    def confirm_epoch(self) -> None:
        """The unit is in vain if another epoch is in force than the one that is known here."""
        ...

    def raise_epoch(self, above: int) -> tuple[int, int]:
        """(previous, current)."""
        ...

    def revoked(self, now: float) -> dict[str, float]:
        """Sessions that were revoked, as far as it is known here, and when their leases end."""
        ...

    def confirm_session(self, session_id: str) -> None:
        """The unit is in vain if this session was revoked, and that is not known here."""
        ...

    def end_session(self, session_id: str, principal: str, epoch: int, expires_at: float) -> None:
        """A session is revoked: its holds wait no more, and it counts no more for its principal."""
        ...

    def renew(self, above: int) -> tuple[int, int]:
        """Make this the store of the ledger, whatever was known of another one, and end every lease: (previous,
        current). At once, whether or not the unit is committed."""
        ...

    # ----------------------------------------------------------------- budgets

    def open_budget(self, session_id: str, max_calls: int, expires_at: float) -> None:
        """Create the counter of a new session."""
        ...

    def budget(self, session_id: str) -> Budget:
        """Look without debiting."""
        ...

    def debit(self, session_id: str) -> Budget:
        """Take one call when one is left."""
        ...

    def refund(self, session_id: str) -> None:
        """Give one call back, up to what the session began with; a session that is gone is not an error."""
        ...

    # ----------------------------------------------------------------- quotas

    def calls_of(self, principal: str, now: float) -> tuple[int, int | None]:
        """Calls that count now, and, where there are any, the seconds until the first of them counts no more."""
        ...

    def count_call(self, principal: str, minute: int) -> None:
        """One more call of this minute."""
        ...

    def give_back(self, principal: str, minute: int) -> None:
        """Uncount a call that was counted in this minute and not executed; nothing to do if it counts no more."""
        ...

    def note_hold(self, approval_id: str, principal: str, minute: int) -> None:
        """The call that was counted in this minute waits for a person."""
        ...

    def give_back_hold(self, approval_id: str) -> None:
        """A held call will never be executed. Once; of one that was not counted nothing happens."""
        ...

    def is_counted_hold(self, approval_id: str) -> bool:
        """True for a hold whose call counts, and was not given back."""
        ...

    def sessions_of(self, principal: str, epoch: int, now: float) -> tuple[int, int | None]:
        """Leases that live now, and, where there are any, the seconds until the first of them ends."""
        ...

    def add_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """One more lease."""
        ...

    def extend_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """A lease of a session that counts already: the session ends later."""
        ...

    def last_session(self, holder: str) -> LastSession | None:
        """The last session of one holder of leases; it may have ended."""
        ...

    def keep_session(self, holder: str, session: LastSession) -> None:
        """This is its last one from now on."""
        ...

    # ----------------------------------------------------------------- approvals

    def store_hold(self, record: ApprovalRecord) -> None:
        """Store a new approval."""
        ...

    def hold(self, approval_id: str) -> ApprovalRecord | None:
        """As stored."""
        ...

    def hold_state(self, approval_id: str) -> ApprovalRecord | None:
        """As stored, with an empty body: nothing is read of that."""
        ...

    def move_hold(
        self, approval_id: str, from_state: str, to_state: str, *, outcome: str, holder: str | None = None
    ) -> ApprovalRecord | None:
        """Compare and swap; with its end an approval loses the request. None: it is not in `from_state`."""
        ...

    def keep_ended(self, record: ApprovalRecord, ended_at: float) -> None:
        """Keep an approval that this unit has ended, with its whole body."""
        ...

    def kept_hold(self, approval_id: str) -> ApprovalRecord | None:
        """An ended approval with its whole body, as long as it is kept."""
        ...

    def forget_kept(self, approval_id: str) -> None:
        """Erase an ended approval with its whole body, if it is kept."""
        ...

    def trim_kept(self, bounds: KeptBounds) -> int:
        """Erase kept ones that are over the bounds, the oldest first: at most TRIMMED_AT_ONCE. How many it were."""
        ...

    def void_hold(self, approval_id: str) -> None:
        """End a pending hold whose right was revoked. A hold that is not pending stays as it is."""
        ...

    def pending_hold(
        self, session_id: str, action_id: str, request_hash: str, moment: Moment
    ) -> ApprovalRecord | None:  # fmt: skip
        """The pending approval of this very call, if it still waits."""
        ...

    def waiting_of_session(self, session_id: str, moment: Moment) -> Waiting:
        """Pending approvals of one session."""
        ...

    def waiting_of(self, principal: str, moment: Moment) -> Waiting:
        """Pending approvals of one principal."""
        ...

    def waiting(self, moment: Moment) -> Waiting:
        """All pending approvals."""
        ...

    def count_pending(self, moment: Moment) -> tuple[int, float | None]:
        """How many wait for an operator, and when the one that has waited longest was created."""
        ...

    def due_holds(self, moment: Moment, limit: int) -> list[ApprovalRecord]:
        """Pending ones that wait no more, oldest first: one at least, and no more than TOLD_CHARACTERS. First those
        whose time is over, then those of another epoch."""
        ...

    def claimed_by_others(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """Claimed ones whose holder is not among these, oldest first: one at least, and no more than
        TOLD_CHARACTERS."""
        ...

    def claimed_by(self, holder: str, but: tuple[str, ...]) -> list[ApprovalRecord]:
        """Approvals that this holder has claimed, without the ids in `but`, oldest first: one at least, up to
        TOLD_CHARACTERS."""
        ...

    def list_holds(self, asked: ListHolds, moment: Moment) -> ListedHolds:
        """At most so many as are asked for, newest first, and how many there are; of each body what a list shows."""
        ...

    # ----------------------------------------------------------------- time

    def sweep(self, now: float, over_since: float) -> bool:
        """Forget a bounded number of things that count no more, and approvals that ended and were over at
        `over_since`. True when there may be more."""
        ...


ELSEWHERE = "@"
"""In the holder of an approval: another notary's front."""


def is_claimed_by(approval: ApprovalRecord, front_id: str) -> bool:
    """True while this front has it."""
    return approval.state == CLAIMED and approval.holder == front_id


def as_of(approval: ApprovalRecord, epoch: int) -> ApprovalRecord:
    """As it is in this epoch: one of another has ended, whether or not that is written already."""
    if approval.state == PENDING and approval.epoch != epoch:
        return replace(approval, state=EXPIRED)
    return approval
