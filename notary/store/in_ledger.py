"""The store in the ledger's own SQLite file: a unit's changes are part of its transaction."""

from collections.abc import Collection

from ipc.backends.store import ApprovalRecord, Budget
from ipc.operations.holds import ListedHolds, ListHolds
from notary.database import OpenTransaction
from notary.store import budgets, continued, holds, kept, proofs, quotas, sessions
from notary.store.cap_room import CapRoom
from notary.store.cap_rows import SqliteCaps
from notary.store.contract import LastSession, Moment, Waiting
from notary.store.hold_list import HoldList
from notary.store.keeping import KeptBounds
from notary.store.keyed_calls import SqliteKeyedCalls
from notary.store.marker import forget_marker
from notary.store.standing import SqliteStanding


class SqliteStore:
    """A Store on the connection of a unit, which keeps proofs in its journal first."""

    __slots__ = ("_connection", "caps", "keyed", "standing")
    is_in_ledger = True

    def __init__(self, connection: OpenTransaction, room: CapRoom | None = None) -> None:
        self._connection = connection
        self.caps = SqliteCaps(connection, room)
        self.keyed = SqliteKeyedCalls(connection)
        self.standing = SqliteStanding(connection)

    def foresee(self, session_ids: Collection[str]) -> None:
        """See Store."""

    def apply(self, number: int) -> None:
        """See Store."""

    def confirm(self) -> None:
        """See Store."""

    def keep_doubt(self, last: int) -> None:
        """See Store. A unit of the ledger's own store is never in doubt."""

    def use_proof(self, key: str, now: float) -> bool:  # noqa: ARG002
        """See Store. The caller knows which were used (`KnownProofs`), and writes the row (`proofs.row_of`)."""
        self.look()
        return True

    def look(self) -> None:
        """See Store."""
        proofs.look(self._connection)

    def epoch(self) -> int:
        """See Store."""
        return proofs.epoch(self._connection)

    def confirm_epoch(self) -> None:
        """See Store. It is read in the unit's transaction."""

    def revoked(self, now: float) -> dict[str, float]:
        """See Store. The evidence says it: what was written is in its tables (`Transaction.settle`)."""
        return sessions.revoked(self._connection, now)

    def confirm_session(self, session_id: str) -> None:
        """See Store. No other process revokes."""

    def end_session(self, session_id: str, principal: str, epoch: int, expires_at: float) -> None:  # noqa: ARG002
        """See Store."""
        quotas.drop_session(self._connection, principal, session_id)
        holds.void(self._connection, session_id)

    def raise_epoch(self, above: int) -> tuple[int, int]:
        """See Store."""
        return proofs.raise_epoch(self._connection, above)

    def renew(self, above: int) -> tuple[int, int]:
        """See Store."""
        forget_marker(self._connection)
        return proofs.raise_epoch(self._connection, above)

    def open_budget(self, session_id: str, max_calls: int, expires_at: float) -> None:
        """See Store."""
        budgets.open_budget(self._connection, session_id, max_calls, expires_at)

    def budget(self, session_id: str) -> Budget:
        """See Store."""
        return budgets.read(self._connection, session_id)

    def debit(self, session_id: str) -> Budget:
        """See Store."""
        return budgets.debit(self._connection, session_id)

    def refund(self, session_id: str) -> None:
        """See Store."""
        budgets.refund(self._connection, session_id)

    def calls_of(self, principal: str, now: float) -> tuple[int, int | None]:
        """See Store."""
        return quotas.calls_of(self._connection, principal, now)

    def count_call(self, principal: str, minute: int) -> None:
        """See Store."""
        quotas.count_call(self._connection, principal, minute)

    def give_back(self, principal: str, minute: int) -> None:
        """See Store."""
        quotas.give_back(self._connection, principal, minute)

    def note_hold(self, approval_id: str, principal: str, minute: int) -> None:
        """See Store."""
        quotas.note_hold(self._connection, approval_id, principal, minute)

    def give_back_hold(self, approval_id: str) -> None:
        """See Store."""
        quotas.give_back_hold(self._connection, approval_id)

    def is_counted_hold(self, approval_id: str) -> bool:
        """See Store."""
        return quotas.is_counted_hold(self._connection, approval_id)

    def sessions_of(self, principal: str, epoch: int, now: float) -> tuple[int, int | None]:
        """See Store."""
        return quotas.sessions_of(self._connection, principal, epoch, now)

    def add_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """See Store."""
        quotas.add_session(self._connection, principal, session_id, epoch, expires_at)

    def extend_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """See Store."""
        quotas.drop_session(self._connection, principal, session_id)
        quotas.add_session(self._connection, principal, session_id, epoch, expires_at)

    def last_session(self, holder: str) -> LastSession | None:
        """See Store."""
        return continued.last_session(self._connection, holder)

    def keep_session(self, holder: str, session: LastSession) -> None:
        """See Store."""
        continued.keep_session(self._connection, holder, session)

    def store_hold(self, record: ApprovalRecord) -> None:
        """See Store."""
        holds.store(self._connection, record)

    def hold(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return holds.get(self._connection, approval_id)

    def hold_state(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return holds.state(self._connection, approval_id)

    def move_hold(
        self, approval_id: str, from_state: str, to_state: str, *, outcome: str, holder: str | None = None
    ) -> ApprovalRecord | None:
        """See Store."""
        return holds.move(self._connection, approval_id, from_state, to_state, outcome=outcome, holder=holder)

    def keep_ended(self, record: ApprovalRecord, ended_at: float) -> None:
        """See Store."""
        kept.keep(self._connection, record, ended_at)

    def kept_hold(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return kept.kept(self._connection, approval_id)

    def forget_kept(self, approval_id: str) -> None:
        """See Store."""
        kept.forget(self._connection, approval_id)

    def trim_kept(self, bounds: KeptBounds) -> int:
        """See Store."""
        return kept.trim(self._connection, bounds)

    def void_hold(self, approval_id: str) -> None:
        """See Store."""
        holds.void_one(self._connection, approval_id)

    def pending_hold(
        self, session_id: str, action_id: str, request_hash: str, moment: Moment
    ) -> ApprovalRecord | None:  # fmt: skip
        """See Store."""
        return holds.pending(self._connection, session_id, action_id, request_hash, moment)

    def waiting_of_session(self, session_id: str, moment: Moment) -> Waiting:
        """See Store."""
        return holds.waiting_of_session(self._connection, session_id, moment)

    def waiting_of(self, principal: str, moment: Moment) -> Waiting:
        """See Store."""
        return holds.waiting_of(self._connection, principal, moment)

    def waiting(self, moment: Moment) -> Waiting:
        """See Store."""
        return holds.waiting(self._connection, moment)

    def count_pending(self, moment: Moment) -> tuple[int, float | None]:
        """See Store."""
        return holds.count_pending(self._connection, moment)

    def due_holds(self, moment: Moment, limit: int) -> list[ApprovalRecord]:
        """See Store."""
        return holds.due(self._connection, moment, limit)

    def claimed_by_others(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """See Store."""
        return holds.claimed_by_others(self._connection, live_holders)

    def claimed_by(self, holder: str, but: tuple[str, ...]) -> list[ApprovalRecord]:
        """See Store."""
        return holds.claimed_by(self._connection, holder, but)

    def list_holds(self, asked: ListHolds, moment: Moment) -> ListedHolds:
        """See Store."""
        wanted = HoldList(self._connection, asked, moment)
        return ListedHolds(wanted.records(), wanted.total())

    def sweep(self, now: float, over_since: float) -> bool:
        """See Store."""
        return any([
            proofs.sweep(self._connection, now), budgets.sweep(self._connection, now),
            holds.sweep(self._connection, over_since), quotas.sweep(self._connection, now),
            continued.sweep(self._connection, now), self.caps.sweep(now), self.keyed.sweep(now),
        ])  # fmt: skip
