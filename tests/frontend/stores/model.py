"""A plain model of the store, and random histories to hold a backend against it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from frontend.stores.interface import ApprovalRecord, Budget, CheckIn, Hold, Store
from tests.frontend.stores.contract import NOW, OpenStore

Step = tuple[Any, ...]


class Model:
    """What the interface says, in memory, one thing after the other."""

    def __init__(self) -> None:
        self.proofs: dict[str, float] = {}
        self.level = 0
        self.budgets: dict[str, list[int]] = {}
        self.approvals: dict[str, ApprovalRecord] = {}

    def check_in(self, key: str, expires_at: float, now: float) -> CheckIn:
        is_fresh = self.proofs.get(key, 0) <= now
        if is_fresh:
            self.proofs[key] = expires_at
        return CheckIn(is_fresh, self.level)

    def raise_epoch(self, above: int = 0) -> tuple[int, int]:
        before, self.level = self.level, max(self.level, above) + 1
        return before, self.level

    def epoch(self) -> int:
        return self.level

    def budget_open(self, session: str, calls: int, _expires_at: float) -> None:
        self.budgets.setdefault(session, [calls, calls])

    def budget_read(self, session: str) -> Budget:
        found = self.budgets.get(session)
        return Budget(found is not None, False, found[0] if found else 0)

    def budget_debit(self, session: str) -> Budget:
        found = self.budgets.get(session)
        if not found or found[0] == 0:
            return self.budget_read(session)
        found[0] -= 1
        return Budget(True, True, found[0])

    def budget_refund(self, session: str) -> Budget:
        if found := self.budgets.get(session):
            found[0] = min(found[0] + 1, found[1])
        return self.budget_read(session)

    def approval_pending(self, session: str, action: str, request: str, now: float) -> ApprovalRecord | None:
        for record in self.waiting(now):
            if (record.session_id, record.action_id, record.request_hash) == (session, action, request):
                return record
        return None

    def approval_hold(self, record: ApprovalRecord, limit: int, now: float) -> Hold:
        same = self.approval_pending(record.session_id, record.action_id, record.request_hash, now)
        if same is not None:
            return Hold("existing", same)
        own = [other for other in self.waiting(now) if other.session_id == record.session_id]
        if len(own) >= limit:
            return Hold("too_many", None, min((other.expires_at for other in own), default=None))
        self.approvals[record.approval_id] = record
        return Hold("stored", record)

    def approval_get(self, approval_id: str) -> ApprovalRecord | None:
        return self.approvals.get(approval_id)

    def approval_move(self, approval_id: str, before: str, after: str, **given: Any) -> ApprovalRecord | None:
        record, moment = self.approvals.get(approval_id), given.pop("unexpired_at", None)
        if record is None or record.state != before or (moment is not None and record.expires_at <= moment):
            return None
        moved = self.approvals[approval_id] = msgspec.structs.replace(record, state=after, **given)
        return moved

    def approval_expire(self, now: float, limit: int) -> list[ApprovalRecord]:
        over = [r for r in self.approvals.values() if r.state == "pending" and r.expires_at <= now]
        over.sort(key=lambda record: record.expires_at)
        moved = [msgspec.structs.replace(record, state="expired", holder=None) for record in over[:limit]]
        self.approvals |= {record.approval_id: record for record in moved}
        return moved

    def approval_list(self, states: tuple[str, ...] | None, limit: int) -> list[ApprovalRecord]:
        found = [r for r in self.approvals.values() if states is None or r.state in states]
        return sorted(found, key=lambda r: (r.created_at, r.approval_id), reverse=True)[:limit]

    def pending_count(self, now: float) -> int:
        return len(self.waiting(now))

    def pending_oldest(self, now: float) -> float | None:
        return min((r.created_at for r in self.waiting(now)), default=None)

    def waiting(self, now: float) -> list[ApprovalRecord]:
        return [r for r in self.approvals.values() if r.state == "pending" and r.expires_at > now]


SESSIONS = st.sampled_from(["ses_1", "ses_2"])
MOMENTS = st.integers(0, 700).map(lambda seconds: NOW + seconds)
STATES = ["pending", "claimed", "approved", "denied", "expired", "failed"]
APPROVALS = st.integers(0, 11).map(lambda number: f"apr_{number:04}")


def steps() -> st.SearchStrategy[list[Step]]:
    """Histories: (method, arguments, keywords), with restarts in between. Approval ids and expiries never repeat, and a
    proof is remembered beyond the moment at which it is shown."""
    visit = st.tuples(st.sampled_from("pqr"), st.integers(1, 200), MOMENTS)
    move = st.fixed_dictionaries(
        {"outcome": st.sampled_from(["{}", '{"a":1}']), "holder": st.sampled_from([None, "f1", "f2"])},
        optional={"unexpired_at": MOMENTS},
    )
    step = st.one_of(
        st.tuples(st.just("check_in"), visit.map(lambda given: (given[0], given[2] + given[1], given[2]))),
        st.tuples(st.sampled_from(["raise_epoch", "epoch"]), st.just(())),
        st.tuples(st.just("raise_epoch"), st.tuples(st.integers(0, 4))),
        st.tuples(st.just("budget_open"), st.tuples(SESSIONS, st.integers(0, 3), st.just(NOW + 300))),
        st.tuples(st.sampled_from(["budget_read", "budget_debit", "budget_refund"]), st.tuples(SESSIONS)),
        st.tuples(st.just("hold"), st.tuples(SESSIONS, st.sampled_from("rs"), st.integers(1, 3), MOMENTS)),
        st.tuples(st.just("approval_get"), st.tuples(APPROVALS)),
        st.tuples(
            st.just("approval_move"), st.tuples(APPROVALS, st.sampled_from(STATES), st.sampled_from(STATES)), move
        ),
        st.tuples(st.just("approval_expire"), st.tuples(MOMENTS, st.integers(1, 3))),
        st.tuples(
            st.just("approval_list"),
            st.tuples(st.none() | st.lists(st.sampled_from(STATES)).map(tuple), st.integers(1, 5)),
        ),
        st.tuples(st.sampled_from(["pending_count", "pending_oldest"]), st.tuples(MOMENTS)),
        st.tuples(st.just("restart"), st.just(())),
    )
    return st.lists(step, min_size=5, max_size=40)


def _call(step: Step, number: int) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    name, arguments, keywords = step[0], step[1], step[2] if len(step) > 2 else {}
    if name != "hold":
        return name, arguments, keywords
    session, request, limit, now = arguments
    record = ApprovalRecord(
        f"apr_{number:04}", session, "act", request, "pending", NOW + number, NOW + 300 + number / 16, f'"{number}"'
    )
    return "approval_hold", (record, limit, now), {}


async def hold_against_model(open_store: OpenStore, history: Sequence[Step]) -> None:
    """Do the same to a store and to the model; every answer must be the same."""
    model, number = Model(), 0
    store: Store = await open_store()
    for step in history:
        if step[0] == "restart":
            await store.close()
            store = await open_store()
            continue
        name, arguments, keywords = _call(step, number)
        number += name == "approval_hold"
        answer = await getattr(store, name)(*arguments, **keywords)
        assert answer == getattr(model, name)(*arguments, **keywords), (name, arguments, keywords)
    await store.close()
