"""The store within one unit, in Redis: a Store (notary/store/contract.py) whose changes wait for the unit's end."""

from collections.abc import Collection
from contextlib import suppress
from math import ceil
from typing import Final

from ipc.backends.store import ApprovalRecord, Budget
from ipc.operations.holds import ListedHolds, ListHolds
from notary.backends.redis.caps import RedisCaps
from notary.backends.redis.changes import Changes, StoreLost, milliseconds, number
from notary.backends.redis.holds import RedisHolds
from notary.backends.redis.keyed_calls import RedisKeyedCalls
from notary.backends.redis.shared import Shared
from notary.backends.redis.standing import RedisStanding
from notary.database import OpenTransaction
from notary.store import proofs
from notary.store.continued import CONTINUES_SECONDS
from notary.store.contract import LastSession, Moment, StoreGone, Waiting
from notary.store.keeping import KeptBounds
from notary.store.marker import keep_doubt, keep_marker
from notary.store.proofs import REPLAY_SECONDS
from notary.store.quotas import KEPT_SECONDS, WINDOW_MINUTES, minute_of

_NO_SESSION: Final = Budget(found=False, debited=False, remaining=0)
_LONGEST_LEASE_SECONDS: Final = 3600.0
"""The bound of `lease_ttl_seconds`."""
_KEPT_REVOKED_SECONDS: Final = 86_400.0
"""SECURITY: a gateway whose clock is ahead forgets no session that lives by the clock of another one."""
_QUOTA_MS: Final = milliseconds((WINDOW_MINUTES + 1) * 60 + KEPT_SECONDS)


class RedisStore:
    """See Store. It reads each value once, and sees its own changes."""

    is_in_ledger = False

    def __init__(self, shared: Shared, connection: OpenTransaction) -> None:
        self._shared = shared
        self._keys = shared.keys
        self._connection = connection
        self._changes = Changes(shared.client, shared.check, shared.epoch, milliseconds(REPLAY_SECONDS))
        self._holds = RedisHolds(self._changes, shared.keys, shared.notary, shared.clock)
        self.caps = RedisCaps(self._changes, shared.keys, shared.clock)
        self.keyed = RedisKeyedCalls(self._changes, shared.keys, shared.clock)
        self.standing = RedisStanding(self._changes, shared.keys)
        self._budgets: dict[str, list[int] | None] = {}
        """Session -> what it began with, what it has left."""
        self._calls: dict[str, dict[int, int]] = {}
        """Principal -> calls by the minute."""
        self._counted: dict[str, str | None] = {}
        """Hold -> where its call is counted."""
        self._sessions: dict[str, list[float]] = {}
        """Key -> ends of leases that this unit adds."""
        self._extended: dict[str, dict[str, float]] = {}
        """Key -> ends of sessions that this unit extends."""
        self._last: dict[str, LastSession | None] = {}
        """Holder -> its last session."""
        self._is_applied = False
        self._confirmed: set[str] = set()

    def foresee(self, session_ids: Collection[str]) -> None:
        """See Store: one question for all of them, where there are several."""
        if len(session_ids) > 1:
            with suppress(StoreGone, StoreLost):  # who depends on it meets it again
                self._read_budgets(session_ids)

    def apply(self, number: int) -> None:
        """Do what was done here, if the unit depends on Redis at all. Raises Outdated, StoreLost, StoreGone."""
        if not self._changes.is_touched:
            return
        try:
            self._shared.apply(self._changes, number)
        except StoreGone as error:
            error.part = self._part
            raise
        self._is_applied = True

    def confirm(self) -> None:
        """See Store. A unit that changed nothing here says nothing of one before it."""
        if self._is_applied:
            self._shared.confirm()

    def keep_doubt(self, last: int) -> None:
        """See Store."""
        sent = self._shared.sent
        if sent is not None and sent > last:
            keep_doubt(self._connection, self._shared.notary, sent)

    @property
    def _part(self) -> str:
        """The part that was used first, for errors."""
        if self._changes.proofs:
            return "store"
        if self._holds.is_used:
            return "approvals"
        return "budget" if self._budgets or self._calls or self._sessions or self.caps.is_used else "store"

    # ----------------------------------------------------------------- proofs and epoch

    def use_proof(self, key: str, now: float) -> bool:  # noqa: ARG002 - the server's clock forgets it
        """See Store. Sends no request: applying the unit requires that the proof is new."""
        self._changes.touch()
        name = self._keys.proof(key)
        if name in self._shared.used:
            return False
        self._changes.proofs.append(name)
        return True

    def look(self) -> None:
        """See Store: by writing, since a Redis that is full or a replica still reads."""
        self._changes.look("SET", self._keys.probe, "1", "PX", "1000")

    def epoch(self) -> int:
        """See Store. As it was last heard of: what depends on it says so, or touches the store otherwise."""
        return self._changes.epoch

    def confirm_epoch(self) -> None:
        """See Store."""
        self._changes.touch()

    def raise_epoch(self, above: int) -> tuple[int, int]:
        """See Store."""
        before = self._changes.epoch if self._changes.raised is None else self._changes.raised
        current = max(before, above) + 1
        self._changes.step("epoch", self._keys.epoch, str(current))
        self._changes.raised = current
        proofs.keep_epoch(self._connection, current)
        return before, current

    def revoked(self, now: float) -> dict[str, float]:  # noqa: ARG002 - what is over is not heard of
        """See Store. As it was last heard of."""
        return self._shared.revoked

    def confirm_session(self, session_id: str) -> None:
        """See Store. Sends no request: applying the unit requires that the session was not revoked."""
        self._changes.touch()
        if session_id not in self._confirmed:
            self._confirmed.add(session_id)
            self._changes.checks.append([None, "ZSCORE", self._keys.revoked, session_id])

    def end_session(self, session_id: str, principal: str, epoch: int, expires_at: float) -> None:
        """See Store. The longest lease says for how long the key lives."""
        lives = milliseconds(_LONGEST_LEASE_SECONDS + CONTINUES_SECONDS + _KEPT_REVOKED_SECONDS)
        over = repr(self._shared.clock() - _KEPT_REVOKED_SECONDS)
        self._changes.step("session", self._keys.revoked, session_id, repr(expires_at), lives, over)
        self._changes.step("zrem", self._keys.sessions(epoch, principal), session_id)
        self._changes.revoked[session_id] = expires_at
        self._holds.void(session_id)

    def renew(self, above: int) -> tuple[int, int]:
        """See Store."""
        previous, current = self._shared.renew(above)
        keep_marker(self._connection, self._shared.marker)
        proofs.keep_epoch(self._connection, current)
        return previous, current

    # ----------------------------------------------------------------- budgets

    def open_budget(self, session_id: str, max_calls: int, expires_at: float) -> None:
        """See Store."""
        key = self._keys.budget(session_id)
        self._changes.step("hset", key, "max", str(max_calls), "left", str(max_calls))
        self._changes.step("lives", key, milliseconds(expires_at - self._shared.clock() + KEPT_SECONDS))
        self._budgets[session_id] = [max_calls, max_calls]

    def budget(self, session_id: str) -> Budget:
        """See Store."""
        kept = self._kept(session_id)
        return _NO_SESSION if kept is None else Budget(found=True, debited=False, remaining=kept[1])

    def debit(self, session_id: str) -> Budget:
        """See Store."""
        kept = self._kept(session_id)
        if kept is None or kept[1] < 1:
            return self.budget(session_id)
        kept[1] -= 1
        self._changes.step("debit", self._keys.budget(session_id))
        return Budget(found=True, debited=True, remaining=kept[1])

    def refund(self, session_id: str) -> None:
        """See Store."""
        self._changes.step("credit", self._keys.budget(session_id))
        kept = self._budgets.get(session_id)
        if kept is not None:
            kept[1] = min(kept[0], kept[1] + 1)

    def _kept(self, session_id: str) -> list[int] | None:
        if session_id not in self._budgets:
            self._read_budgets([session_id])
        return self._budgets[session_id]

    def _read_budgets(self, session_ids: Collection[str]) -> None:
        keys = [self._keys.budget(session_id) for session_id in session_ids]
        answers = self._changes.read_all([("HGET", key, field) for key in keys for field in ("max", "left")])
        for session_id, most, left in zip(session_ids, answers[::2], answers[1::2], strict=True):
            self._budgets[session_id] = None if most is None or left is None else [number(most), number(left)]

    # ----------------------------------------------------------------- quotas

    def calls_of(self, principal: str, now: float) -> tuple[int, int | None]:
        """See Store."""
        after = minute_of(now) - WINDOW_MINUTES
        counted = {minute: calls for minute, calls in self._minutes(principal).items() if minute > after and calls > 0}
        first = min(counted, default=None)
        return sum(counted.values()), None if first is None else ceil((first + WINDOW_MINUTES) * 60 - now)

    def count_call(self, principal: str, minute: int) -> None:
        """See Store."""
        self._count(principal, minute, 1)

    def give_back(self, principal: str, minute: int) -> None:
        """See Store."""
        self._count(principal, minute, -1)

    def _count(self, principal: str, minute: int, change: int) -> None:
        oldest = minute_of(self._shared.clock()) - WINDOW_MINUTES - 1
        self._changes.step("count", self._keys.calls(principal), str(minute), str(change), str(oldest), _QUOTA_MS)
        known = self._calls.get(principal)
        if known is not None:
            known[minute] = max(0, known.get(minute, 0) + change)

    def _minutes(self, principal: str) -> dict[int, int]:
        if principal not in self._calls:
            key = self._keys.calls(principal)
            self._changes.read("HGET", key, "v")
            fields = self._changes.look("HGETALL", key)
            # Redis does not have yet what this unit has counted before this look.
            pairs = zip(fields[::2], fields[1::2], strict=True)
            minutes = {number(minute): number(calls) for minute, calls in pairs if minute != "v"}
            for _, name, minute, change, *_ in (step for step in self._changes.steps if step[0] == "count"):
                if name == key:
                    minutes[int(minute)] = max(0, minutes.get(int(minute), 0) + int(change))
            self._calls[principal] = minutes
        return self._calls[principal]

    def note_hold(self, approval_id: str, principal: str, minute: int) -> None:
        """See Store."""
        where = f"{minute} {principal}"
        self._changes.step("set", self._keys.counted(approval_id), where, _QUOTA_MS)
        self._counted[approval_id] = where

    def give_back_hold(self, approval_id: str) -> None:
        """See Store."""
        where = self._where(approval_id)
        if where is not None:
            minute, _, principal = where.partition(" ")
            self._changes.step("del", self._keys.counted(approval_id))
            self._counted[approval_id] = None
            self.give_back(principal, number(minute))

    def is_counted_hold(self, approval_id: str) -> bool:
        """See Store."""
        return self._where(approval_id) is not None

    def _where(self, approval_id: str) -> str | None:
        if approval_id not in self._counted:
            self._counted[approval_id] = self._changes.read("GET", self._keys.counted(approval_id))
        return self._counted[approval_id]

    def sessions_of(self, principal: str, epoch: int, now: float) -> tuple[int, int | None]:
        """See Store."""
        key, after = self._keys.sessions(epoch, principal), f"({now!r}"
        counted = number(self._changes.read("ZCOUNT", key, after, "+inf"))
        moved = self._extended.get(key, {})
        most = str(1 + len(moved))
        first = self._changes.look("ZRANGEBYSCORE", key, after, "+inf", "WITHSCORES", "LIMIT", "0", most)
        kept = [float(end) for one, end in zip(first[::2], first[1::2], strict=True) if one not in moved]
        ends = [*kept, *moved.values(), *self._sessions.get(key, ())]
        return counted + len(self._sessions.get(key, ())), ceil(min(ends) - now) if ends else None

    def add_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """See Store."""
        key = self._note_session(principal, session_id, epoch, expires_at)
        self._sessions.setdefault(key, []).append(expires_at)

    def extend_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> None:
        """See Store."""
        key = self._note_session(principal, session_id, epoch, expires_at)
        self._extended.setdefault(key, {})[session_id] = expires_at

    def _note_session(self, principal: str, session_id: str, epoch: int, expires_at: float) -> str:
        """Its key, which the longest lease lets live."""
        key, lives = self._keys.sessions(epoch, principal), milliseconds(_LONGEST_LEASE_SECONDS + KEPT_SECONDS)
        self._changes.step("session", key, session_id, repr(expires_at), lives, repr(self._shared.clock()))
        return key

    def last_session(self, holder: str) -> LastSession | None:
        """See Store."""
        if holder not in self._last:
            kept = self._changes.read("GET", self._keys.last_session(holder))
            try:
                session_id, epoch, expires_at = (kept or "none 0 0").split(" ")
                self._last[holder] = LastSession(session_id, int(epoch), float(expires_at)) if kept else None
            except ValueError:
                raise StoreGone("Redis: an unreadable session") from None
        return self._last[holder]

    def keep_session(self, holder: str, session: LastSession) -> None:
        """See Store."""
        lives = milliseconds(session.expires_at - self._shared.clock() + CONTINUES_SECONDS)
        kept = f"{session.session_id} {session.epoch} {session.expires_at!r}"
        self._changes.step("put", self._keys.last_session(holder), kept, lives)
        self._last[holder] = session

    # ----------------------------------------------------------------- approvals

    def store_hold(self, record: ApprovalRecord) -> None:
        """See Store."""
        self._holds.store(record)

    def hold(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return self._holds.get(approval_id)

    def hold_state(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return self._holds.state(approval_id)

    def move_hold(
        self, approval_id: str, from_state: str, to_state: str, *, outcome: str, holder: str | None = None
    ) -> ApprovalRecord | None:
        """See Store."""
        return self._holds.move(approval_id, from_state, to_state, outcome, holder)

    def keep_ended(self, record: ApprovalRecord, ended_at: float) -> None:
        """See Store."""
        self._holds.keep(record, ended_at)

    def kept_hold(self, approval_id: str) -> ApprovalRecord | None:
        """See Store."""
        return self._holds.kept(approval_id)

    def forget_kept(self, approval_id: str) -> None:
        """See Store."""
        self._holds.forget_kept(approval_id)

    def trim_kept(self, bounds: KeptBounds) -> int:
        """See Store."""
        return self._shared.trim_kept(bounds) if self._shared.client.is_taken else 0

    def void_hold(self, approval_id: str) -> None:
        """See Store."""
        self._holds.void_one(approval_id)

    def pending_hold(self, session_id: str, action_id: str, request_hash: str, moment: Moment) -> ApprovalRecord | None:
        """See Store."""
        return self._holds.pending(session_id, action_id, request_hash, moment)

    def waiting_of_session(self, session_id: str, moment: Moment) -> Waiting:
        """See Store."""
        return self._holds.waiting(moment, session_id=session_id)

    def waiting_of(self, principal: str, moment: Moment) -> Waiting:
        """See Store."""
        return self._holds.waiting(moment, principal=principal)

    def waiting(self, moment: Moment) -> Waiting:
        """See Store."""
        return self._holds.waiting(moment)

    def count_pending(self, moment: Moment) -> tuple[int, float | None]:
        """See Store."""
        return self._holds.count_pending(moment)

    def due_holds(self, moment: Moment, limit: int) -> list[ApprovalRecord]:
        """See Store."""
        return self._holds.due(moment, limit)

    def claimed_by_others(self, live_holders: tuple[str, ...]) -> list[ApprovalRecord]:
        """See Store."""
        return self._holds.claimed(lambda _, holder: holder not in live_holders)

    def claimed_by(self, holder: str, but: tuple[str, ...]) -> list[ApprovalRecord]:
        """See Store."""
        return self._holds.claimed(lambda approval_id, found: found == holder and approval_id not in but)

    def list_holds(self, asked: ListHolds, moment: Moment) -> ListedHolds:
        """See Store."""
        return self._holds.list(asked, moment)

    # ----------------------------------------------------------------- time

    def sweep(self, now: float, over_since: float) -> bool:  # noqa: ARG002 - the server's clock forgets the rest
        """See Store."""
        return self._shared.client.is_taken and self._shared.sweep(over_since)
