"""The contract of every key-value backend: the tests that a backend's test file inherits.

A backend gives one fixture, `open_store`: an async function that opens the same store again each time it is called, as
another front or a restarted one would. Stores that it opened are closed by the backend's fixture.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import msgspec
import pytest
import trio

from frontend.stores.interface import ApprovalRecord, Budget, Store

Answer = TypeVar("Answer")
OpenStore = Callable[..., Awaitable[Store]]

NOW = 1_790_000_000.0


def pending(number: int, *, session: str = "ses_1", request: str | None = None, **changed: Any) -> ApprovalRecord:
    """A pending approval that was made `number` seconds after NOW and waits for five minutes."""
    record = ApprovalRecord(
        approval_id=f"apr_{number:04}", session_id=session, action_id="act", request_hash=request or f"sha256:{number}",
        state="pending", created_at=NOW + number, expires_at=NOW + number + 300, body=f'{{"number":{number}}}',
    )  # fmt: skip
    return msgspec.structs.replace(record, **changed)


async def all_of(calls: Iterable[Callable[[], Awaitable[Answer]]]) -> list[Answer]:
    """Results of calls that are made at the same time, in the order of the calls."""
    wanted = list(calls)
    results: dict[int, Answer] = {}

    async def run(index: int, call: Callable[[], Awaitable[Answer]]) -> None:
        results[index] = await call()

    async with trio.open_nursery() as nursery:
        for index, call in enumerate(wanted):
            nursery.start_soon(run, index, call)
    return [results[index] for index in range(len(wanted))]


class ProofContract:
    async def test_a_proof_is_fresh_once(self, open_store: OpenStore) -> None:
        store = await open_store()
        assert (await store.check_in("p", NOW + 180, NOW)).is_fresh
        assert not (await store.check_in("p", NOW + 180, NOW)).is_fresh
        assert (await store.check_in("q", NOW + 180, NOW)).is_fresh

    async def test_a_proof_that_comes_again_later_with_another_expiry_is_known(self, open_store: OpenStore) -> None:
        store = await open_store()
        assert (await store.check_in("p", NOW + 180, NOW)).is_fresh
        for later in (1, 30, 59, 61, 119, 121, 179.999):
            assert not (await store.check_in("p", NOW + later + 180, NOW + later)).is_fresh, later

    @pytest.mark.parametrize("life", [0.001, 1, 59, 60, 61, 180, 86_400 * 30])
    async def test_a_proof_is_known_until_it_has_expired_and_not_after(
        self, open_store: OpenStore, life: float
    ) -> None:
        store = await open_store()
        assert (await store.check_in("p", NOW + life, NOW)).is_fresh
        assert not (await store.check_in("p", NOW + life, NOW + life * 0.99)).is_fresh
        assert (await store.check_in("p", NOW + life + 10, NOW + life)).is_fresh
        assert not (await store.check_in("p", NOW + life + 10, NOW + life)).is_fresh

    async def test_of_many_that_bring_one_proof_at_once_one_is_fresh(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        visits = await all_of(partial(store.check_in, "p", NOW + 180, NOW) for store in (first, second) * 20)
        assert sum(visit.is_fresh for visit in visits) == 1

    async def test_a_look_at_the_epoch_comes_with_every_visit(self, open_store: OpenStore) -> None:
        store = await open_store()
        assert (await store.check_in("p", NOW + 180, NOW)).epoch == 0
        await store.raise_epoch()
        assert (await store.check_in("q", NOW + 180, NOW)).epoch == 1
        assert (await store.check_in("q", NOW + 180, NOW)).epoch == 1

    async def test_the_epoch_only_rises(self, open_store: OpenStore) -> None:
        store, other = await open_store(), await open_store()
        assert await store.epoch() == 0
        assert await store.raise_epoch() == (0, 1)
        assert await other.raise_epoch() == (1, 2)
        assert await store.raise_epoch(above=1) == (2, 3)
        assert await store.raise_epoch(above=7) == (3, 8)
        assert await other.epoch() == 8

    async def test_raises_at_the_same_time_all_count(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        moves = await all_of(store.raise_epoch for store in (first, second) * 10)
        assert sorted(moves) == [(number, number + 1) for number in range(20)]
        assert await first.epoch() == await second.epoch() == 20


class BudgetContract:
    async def test_a_session_without_budget_is_not_found(self, open_store: OpenStore) -> None:
        store = await open_store()
        unknown = Budget(found=False, debited=False, remaining=0)
        assert await store.budget_read("ses_x") == unknown
        assert await store.budget_debit("ses_x") == unknown
        assert await store.budget_refund("ses_x") == unknown

    async def test_a_budget_is_debited_to_nothing_and_no_further(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.budget_open("ses_1", 2, NOW + 300)
        assert await store.budget_debit("ses_1") == Budget(found=True, debited=True, remaining=1)
        assert await store.budget_debit("ses_1") == Budget(found=True, debited=True, remaining=0)
        assert await store.budget_debit("ses_1") == Budget(found=True, debited=False, remaining=0)
        assert await store.budget_read("ses_1") == Budget(found=True, debited=False, remaining=0)

    async def test_a_budget_of_none_is_found_and_empty(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.budget_open("ses_1", 0, NOW + 300)
        assert await store.budget_debit("ses_1") == Budget(found=True, debited=False, remaining=0)

    async def test_a_refund_never_exceeds_what_the_session_began_with(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.budget_open("ses_1", 3, NOW + 300)
        await store.budget_debit("ses_1")
        for _ in range(3):
            assert (await store.budget_refund("ses_1")).remaining == 3

    async def test_opening_a_budget_again_does_not_fill_it(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.budget_open("ses_1", 3, NOW + 300)
        await store.budget_debit("ses_1")
        await store.budget_open("ses_1", 3, NOW + 300)
        assert (await store.budget_read("ses_1")).remaining == 2

    async def test_debits_at_the_same_time_never_overdraw(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        await first.budget_open("ses_1", 25, NOW + 300)
        answers = await all_of(partial(store.budget_debit, "ses_1") for store in (first, second) * 20)
        taken = [answer.remaining for answer in answers if answer.debited]
        assert sorted(taken) == list(range(25))


class ApprovalContract:
    async def test_a_hold_is_stored_as_it_is(self, open_store: OpenStore) -> None:
        store = await open_store()
        record = pending(1, body='{"é":"\\u0000"}')
        assert (await store.approval_hold(record, 20, NOW)).kind == "stored"
        assert await store.approval_get("apr_0001") == record
        assert await store.approval_get("apr_none") is None

    async def test_the_same_call_is_held_once(self, open_store: OpenStore) -> None:
        store = await open_store()
        first, again = pending(1, request="r"), pending(2, request="r")
        await store.approval_hold(first, 20, NOW)
        assert await store.approval_pending("ses_1", "act", "r", NOW) == first
        hold = await store.approval_hold(again, 20, NOW)
        assert (hold.kind, hold.record) == ("existing", first)
        assert await store.approval_get("apr_0002") is None

    @pytest.mark.parametrize("change", [{"session_id": "ses_2"}, {"action_id": "other"}, {"request_hash": "r2"}])
    async def test_another_call_is_another_hold(self, open_store: OpenStore, change: dict[str, str]) -> None:
        store = await open_store()
        await store.approval_hold(pending(1, request="r"), 20, NOW)
        assert (await store.approval_hold(pending(2, request="r", **change), 20, NOW)).kind == "stored"

    async def test_a_hold_that_is_over_or_decided_does_not_stand_for_a_new_one(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.approval_hold(pending(0, request="r"), 20, NOW)
        assert await store.approval_pending("ses_1", "act", "r", NOW + 299.9) is not None
        assert await store.approval_pending("ses_1", "act", "r", NOW + 300) is None
        assert (await store.approval_hold(pending(301, request="r"), 20, NOW + 301)).kind == "stored"
        await store.approval_move("apr_0301", "pending", "claimed", outcome="{}", holder="f")
        assert (await store.approval_hold(pending(302, request="r"), 20, NOW + 302)).kind == "stored"

    async def test_a_session_has_a_bounded_number_of_holds(self, open_store: OpenStore) -> None:
        store = await open_store()
        for number in range(3):
            assert (await store.approval_hold(pending(number), 3, NOW)).kind == "stored"
        hold = await store.approval_hold(pending(3), 3, NOW)
        assert (hold.kind, hold.record) == ("too_many", None)
        assert hold.free_at == min([kept.expires_at for kept in await store.approval_list(("pending",), 50)])
        assert (await store.approval_hold(pending(1, approval_id="apr_x"), 3, NOW)).kind == "existing"
        assert (await store.approval_hold(pending(4, session="ses_2"), 3, NOW)).kind == "stored"
        # The first one's time is over at 300 s.
        assert (await store.approval_hold(pending(300), 3, NOW + 300)).kind == "stored"

    async def test_holds_of_one_call_at_the_same_time_are_one(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        holds = await all_of(
            partial(store.approval_hold, pending(n, request="r"), 20, NOW)
            for n, store in enumerate((first, second) * 10)
        )
        assert sorted(hold.kind for hold in holds) == ["existing"] * 19 + ["stored"]
        assert len({hold.record for hold in holds}) == 1

    async def test_a_move_changes_state_outcome_and_holder_and_nothing_else(self, open_store: OpenStore) -> None:
        store = await open_store()
        record = pending(1)
        await store.approval_hold(record, 20, NOW)
        moved = await store.approval_move("apr_0001", "pending", "claimed", outcome='{"claimed_by":"a"}', holder="f1")
        wanted = pending(1, state="claimed", outcome='{"claimed_by":"a"}', holder="f1")
        assert moved == wanted == await store.approval_get("apr_0001")
        ended = await store.approval_move("apr_0001", "claimed", "denied", outcome="{}", holder=None)
        assert ended == pending(1, state="denied", outcome="{}", holder=None)

    async def test_a_move_from_another_state_or_of_nothing_is_refused(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.approval_hold(pending(1), 20, NOW)
        assert await store.approval_move("apr_0001", "claimed", "denied", outcome="{}", holder=None) is None
        assert await store.approval_move("apr_none", "pending", "claimed", outcome="{}", holder=None) is None
        assert await store.approval_get("apr_0001") == pending(1)

    async def test_a_move_can_ask_for_time_that_is_left(self, open_store: OpenStore) -> None:
        store = await open_store()
        for number, moment, wins in ((0, NOW + 299.999, True), (1, NOW + 301, False)):
            await store.approval_hold(pending(number), 20, NOW)
            moved = await store.approval_move(
                f"apr_{number:04}", "pending", "claimed", outcome="{}", holder="f", unexpired_at=moment
            )
            assert (moved is not None) is wins

    async def test_of_any_number_of_operators_and_the_clock_one_wins(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        await first.approval_hold(pending(0), 20, NOW)

        async def expire() -> ApprovalRecord | None:
            expired = await first.approval_expire(NOW + 300, 10)
            return expired[0] if expired else None

        calls: list[Callable[[], Awaitable[ApprovalRecord | None]]] = [
            partial(
                store.approval_move, "apr_0000", "pending", "claimed", outcome=f'{{"n":{number}}}', holder=f"f{number}"
            )
            for number, store in enumerate((first, second) * 10)
        ]
        calls.insert(7, expire)
        winners = [winner for winner in await all_of(calls) if winner is not None]
        assert winners == [await second.approval_get("apr_0000")]

    async def test_lists_are_newest_first_filtered_and_bounded(self, open_store: OpenStore) -> None:
        store = await open_store()
        for number in range(6):
            await store.approval_hold(pending(number), 20, NOW)
        await store.approval_hold(pending(9, approval_id="apr_tie", created_at=NOW + 5), 20, NOW)
        await store.approval_move("apr_0001", "pending", "claimed", outcome="{}", holder="f")
        await store.approval_move("apr_0003", "pending", "claimed", outcome="{}", holder="f")
        await store.approval_move("apr_0003", "claimed", "denied", outcome="{}", holder=None)

        async def listed(states: tuple[str, ...] | None, limit: int = 50) -> list[str]:
            return [record.approval_id for record in await store.approval_list(states, limit)]

        everything = ["apr_tie", "apr_0005", "apr_0004", "apr_0003", "apr_0002", "apr_0001", "apr_0000"]
        assert await listed(None) == everything
        assert await listed(None, 2) == everything[:2]
        assert await listed(("claimed",)) == ["apr_0001"]
        assert await listed(("claimed", "denied", "claimed")) == ["apr_0003", "apr_0001"]
        assert await listed(("pending", "denied"), 4) == ["apr_tie", "apr_0005", "apr_0004", "apr_0003"]
        assert await listed(()) == []
        assert await listed(("failed",)) == []

    async def test_expiry_moves_what_is_over_oldest_first_and_tells_once(self, open_store: OpenStore) -> None:
        store, other = await open_store(), await open_store()
        for number in range(4):
            await store.approval_hold(pending(number), 20, NOW)
        await store.approval_move("apr_0001", "pending", "claimed", outcome="{}", holder="f")
        assert await store.approval_expire(NOW + 299, 10) == []
        first = await store.approval_expire(NOW + 302, 1)
        assert first == [pending(0, state="expired")]
        assert await other.approval_expire(NOW + 302, 10) == [pending(2, state="expired")]
        assert await store.approval_expire(NOW + 302, 10) == []
        assert await store.approval_get("apr_0003") == pending(3)

    async def test_expiry_at_the_same_time_tells_each_hold_once(self, open_store: OpenStore) -> None:
        first, second = await open_store(), await open_store()
        for number in range(10):
            await first.approval_hold(pending(number), 20, NOW)
        rounds = await all_of(partial(store.approval_expire, NOW + 1000, 3) for store in (first, second) * 4)
        told = [record.approval_id for found in rounds for record in found]
        assert sorted(told) == [f"apr_{number:04}" for number in range(10)]

    async def test_claims_of_fronts_that_are_gone_are_found(self, open_store: OpenStore) -> None:
        store = await open_store()
        for number, holder in enumerate(("f1", "f2", "f3", None)):
            await store.approval_hold(pending(number), 20, NOW)
            await store.approval_move(f"apr_{number:04}", "pending", "claimed", outcome="{}", holder=holder)
        await store.approval_hold(pending(8), 20, NOW)
        await store.approval_move("apr_0002", "claimed", "approved", outcome="{}", holder="f3")
        assert {r.approval_id for r in await store.approval_claimed_by_others(("f1",))} == {"apr_0001", "apr_0003"}
        assert len(await store.approval_claimed_by_others(())) == 3
        assert {r.holder for r in await store.approval_claimed_by_others(("f1", "f2"))} == {None}

    async def test_those_that_wait_are_counted(self, open_store: OpenStore) -> None:
        store = await open_store()
        assert (await store.pending_count(NOW), await store.pending_oldest(NOW)) == (0, None)
        for number in range(3):
            await store.approval_hold(pending(number), 20, NOW)
        await store.approval_move("apr_0002", "pending", "claimed", outcome="{}", holder="f")
        assert await store.pending_count(NOW) == 2
        assert await store.pending_count(NOW + 300) == 1
        assert [await store.pending_oldest(NOW + later) for later in (0, 300, 1000)] == [NOW, NOW + 1, None]


class SweepContract:
    async def test_a_sweep_forgets_what_is_over_and_nothing_else(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.check_in("old", NOW + 180, NOW)
        await store.check_in("young", NOW + 2000, NOW)
        await store.budget_open("ses_old", 5, NOW + 300)
        await store.budget_open("ses_young", 5, NOW + 2000)
        for number, state in enumerate(("denied", "failed", "claimed", "pending")):
            await store.approval_hold(pending(number), 20, NOW)
            if state != "pending":
                await store.approval_move(f"apr_{number:04}", "pending", state, outcome="{}", holder=None)
        await store.sweep(NOW + 1000, 5000)
        assert not (await store.budget_read("ses_old")).found
        assert (await store.budget_read("ses_young")).found
        assert not (await store.check_in("young", NOW + 2000, NOW + 1000)).is_fresh
        assert (await store.check_in("old", NOW + 2000, NOW + 1000)).is_fresh
        assert len(await store.approval_list(None, 50)) == 4
        await store.sweep(NOW + 6000, 5000)
        left = {record.approval_id: record.state for record in await store.approval_list(None, 50)}
        assert left == {"apr_0002": "claimed", "apr_0003": "pending"}

    async def test_a_sweep_clears_more_than_it_takes_at_once(self, open_store: OpenStore) -> None:
        store = await open_store()
        await all_of(partial(store.check_in, f"p{n}", NOW + 60, NOW) for n in range(900))
        await all_of(partial(store.budget_open, f"s{n}", 1, NOW + 60) for n in range(900))
        await store.sweep(NOW + 1000, 0)
        budgets = await all_of(partial(store.budget_read, f"s{n}") for n in range(900))
        assert not any(budget.found for budget in budgets)


class RestartContract:
    async def test_everything_is_there_after_closing_and_opening(self, open_store: OpenStore) -> None:
        store = await open_store()
        await store.check_in("p", NOW + 180, NOW)
        await store.budget_open("ses_1", 3, NOW + 300)
        await store.budget_debit("ses_1")
        await store.approval_hold(pending(1), 20, NOW)
        await store.raise_epoch()
        await store.close()
        again = await open_store()
        visit = await again.check_in("p", NOW + 180, NOW)
        assert (visit.is_fresh, visit.epoch) == (False, 1)
        assert (await again.budget_read("ses_1")).remaining == 2
        assert await again.approval_get("apr_0001") == pending(1)
        assert await again.epoch() == 1


class StoreContract(ProofContract, BudgetContract, ApprovalContract, SweepContract, RestartContract):
    """All of it."""
