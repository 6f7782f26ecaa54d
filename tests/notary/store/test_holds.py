"""Approvals at their bounds, of any store: the end of their time, of a page, and of a session; and in Redis, of another
notary's claim."""

import pytest

from ipc.approvals import CLAIMED, EXPIRED, PENDING
from ipc.backends.store import NO_EPOCH, RIGHT_REVOKED
from ipc.operations.holds import ListHolds
from notary.backends.sqlite import SqliteDatabase
from notary.store.contract import Moment
from notary.store.keeping import LONGEST_CALL_SECONDS
from tests.notary.samples import NOW
from tests.notary.store.conftest import UnitOfStore, open_stores, unit_of
from tests.notary.store.test_contract import MOMENT, approval
from tests.support.redis_server import RedisServer


def ids(unit: UnitOfStore, asked: ListHolds) -> list[str]:
    with unit() as store:
        return [record.approval_id for record in store.list_holds(asked, MOMENT).approvals]


def test_a_page_begins_below_its_bound_and_has_approvals_two_milliseconds_older(unit: UnitOfStore) -> None:
    with unit() as store:
        store.store_hold(approval(created_at=NOW))
    assert ids(unit, ListHolds(None, 9, before=NOW + 0.0002)) == []
    assert ids(unit, ListHolds(None, 9, before=NOW + 0.002)) == ["apr_1"]


def test_a_list_tells_what_came_of_each_approval(unit: UnitOfStore) -> None:
    with unit() as store:
        for approval_id in ("apr_1", "apr_2"):
            store.store_hold(approval(approval_id))
        store.move_hold("apr_1", PENDING, CLAIMED, outcome='{"claimed_by":"o"}', holder="front-1")
    with unit() as store:
        listed = store.list_holds(ListHolds(None, 9), MOMENT).approvals
    assert {one.approval_id: one.outcome for one in listed} == {"apr_1": '{"claimed_by":"o"}', "apr_2": "{}"}


def test_an_approval_is_due_at_the_very_end_of_its_time(unit: UnitOfStore) -> None:
    with unit() as store:
        store.store_hold(approval(expires_at=NOW + 60))
    with unit() as store:
        assert store.due_holds(Moment(NOW + 59, 0), 9) == []
        assert [due.approval_id for due in store.due_holds(Moment(NOW + 60, 0), 9)] == ["apr_1"]


def test_an_approval_of_a_session_that_was_revoked_is_of_no_epoch_wherever_it_is_read(unit: UnitOfStore) -> None:
    with unit() as store:
        store.store_hold(approval())
    with unit() as store:
        store.end_session("ses_1", "uid:1000", 0, NOW + 300)
    with unit() as store:
        hold = store.hold("apr_1")
        assert hold is not None
        assert (hold.state, hold.epoch) == (PENDING, NO_EPOCH)
        assert [one.state for one in store.list_holds(ListHolds(None, 9), MOMENT).approvals] == [EXPIRED]
        assert store.list_holds(ListHolds((PENDING,), 9), MOMENT).total == 0


def test_an_approval_whose_right_was_revoked_waits_no_more_and_one_that_is_claimed_goes_on(unit: UnitOfStore) -> None:
    with unit() as store:
        store.store_hold(approval())
        store.store_hold(approval("apr_2", request_hash="sha256:2"))
        store.move_hold("apr_2", PENDING, CLAIMED, outcome="{}", holder="front-1-a")
    with unit() as store:
        for approval_id in ("apr_1", "apr_2", "apr_nothing"):
            store.void_hold(approval_id)
        assert [one.approval_id for one in store.due_holds(MOMENT, 9)] == ["apr_1"]
    with unit() as store:
        void, claimed = store.hold("apr_1"), store.hold("apr_2")
        assert void is not None
        assert claimed is not None
        assert (void.state, void.epoch, claimed.state, claimed.epoch) == (PENDING, RIGHT_REVOKED, CLAIMED, 0)
        assert [one.approval_id for one in store.due_holds(MOMENT, 9)] == ["apr_1"]
        assert store.count_pending(MOMENT) == (0, None)


@pytest.mark.large
def test_a_claim_of_another_notary_stays_its_own_until_the_longest_call_is_over(
    redis_server: RedisServer, database: SqliteDatabase
) -> None:
    one, other = (open_stores(redis_server, "claims", notary) for notary in ("one", "other"))
    over = NOW - LONGEST_CALL_SECONDS
    with unit_of(one, database) as store:
        for approval_id, ends in (("apr_1", over), ("apr_2", over + 1)):
            store.store_hold(approval(approval_id, expires_at=ends))
            store.move_hold(approval_id, PENDING, CLAIMED, outcome="{}", holder="front-1")
    with unit_of(other, database) as store:
        assert [(hold.approval_id, hold.holder) for hold in store.claimed_by_others(())] == [("apr_1", None)]
        hold = store.hold("apr_2")
        assert hold is not None
        assert hold.holder == "front-1@one"
    with unit_of(one, database) as store:
        assert [hold.approval_id for hold in store.claimed_by("front-1", ())] == ["apr_1", "apr_2"]
    for stores in (one, other):
        stores.client.close()
