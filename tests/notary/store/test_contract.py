"""The guarantees that operations rely on: one suite for the store in the ledger and the store in Redis."""

import json

import msgspec
import pytest

from ipc.approvals import APPROVED, CLAIMED, DENIED, EXPIRED, PENDING
from ipc.backends.store import ApprovalRecord, Budget
from ipc.operations.holds import ListHolds
from notary.store.contract import TOLD_CHARACTERS, LastSession, Moment, Waiting
from notary.store.quotas import WINDOW_MINUTES, minute_of
from tests.notary.samples import NOW, make_hold
from tests.notary.store.conftest import UnitOfStore

NONE, THERE = Budget(False, False, 0), Budget(True, False, 2)
MOMENT = Moment(NOW, 0)
MINUTE = minute_of(NOW)


def approval(approval_id: str = "apr_1", **given: object) -> ApprovalRecord:
    """An approval that expires in a minute."""
    fields = {"approval_id": approval_id, "created_at": NOW, "expires_at": NOW + 60, "epoch": 0}
    return msgspec.structs.replace(make_hold().approval, **fields | given)


def test_a_budget_is_debited_down_to_nothing_and_given_back_up_to_what_it_was(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.budget("ses_1") == store.debit("ses_1") == NONE
    with unit() as store:
        store.open_budget("ses_1", 2, NOW + 60)
        assert store.budget("ses_1") == THERE
    with unit() as store:
        assert [store.debit("ses_1") for _ in range(3)] == [
            Budget(True, True, 1), Budget(True, True, 0), Budget(True, False, 0),
        ]  # fmt: skip
    for _ in range(3):
        with unit() as store:
            store.refund("ses_1")
            store.refund("ses_2")
    with unit() as store:
        assert store.budget("ses_1") == THERE
        assert store.budget("ses_2") == NONE


def test_within_a_unit_a_refund_is_seen_after_a_debit(unit: UnitOfStore) -> None:
    with unit() as store:
        store.open_budget("ses_1", 2, NOW + 60)
        store.debit("ses_1")
        store.debit("ses_1")
        for remaining in (1, 2, 2):
            store.refund("ses_1")
            assert store.budget("ses_1") == Budget(True, False, remaining)
    with unit() as store:
        assert store.budget("ses_1") == THERE


def test_an_epoch_only_grows_and_is_seen_at_once(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.epoch() == 0
        assert store.raise_epoch(0) == (0, 1)
        assert store.raise_epoch(7) == (1, 8)
    with unit() as store:
        assert store.epoch() == 8
        assert store.raise_epoch(3) == (8, 9)


def test_a_store_that_is_made_that_of_the_ledger_again_ends_every_lease(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.renew(7) == (0, 8)
    with unit() as store:
        assert store.epoch() == 8


def test_calls_are_counted_by_the_minute_for_an_hour(unit: UnitOfStore) -> None:
    with unit() as store:
        assert store.calls_of("a", NOW) == (0, None)
        store.count_call("a", MINUTE)
        assert store.calls_of("a", NOW)[0] == 1
        store.count_call("a", MINUTE - 1)
        store.count_call("a", MINUTE)
        store.count_call("b", MINUTE)
    with unit() as store:
        counted, free_in = store.calls_of("a", NOW)
        assert counted == 3
        assert free_in == (MINUTE - 1 + WINDOW_MINUTES) * 60 - NOW
        store.give_back("a", MINUTE - 1)
        store.give_back("a", MINUTE - 1)
        store.give_back("c", MINUTE)
        assert store.calls_of("a", NOW) == (2, free_in + 60)
    with unit() as store:
        assert store.calls_of("a", NOW) == (2, free_in + 60), "nothing is left of the minute before"
        store.give_back("a", MINUTE)
    with unit() as store:
        assert store.calls_of("a", NOW)[0] == 1
        left = WINDOW_MINUTES * 60 - NOW % 60
        assert store.calls_of("a", NOW + left - 1) == (1, 1), "it is free again when its minute is an hour old"
        assert store.calls_of("a", NOW + left) == (0, None)
        assert store.calls_of("a", NOW - 7200)[0] == 1, "a clock that was set back gives no more"


def test_a_count_before_a_read_counts_once(unit: UnitOfStore) -> None:
    for calls in (1, 2):
        with unit() as store:
            store.count_call("a", MINUTE)
            assert store.calls_of("a", NOW)[0] == calls


def test_the_call_of_a_hold_is_given_back_once(unit: UnitOfStore) -> None:
    with unit() as store:
        store.count_call("a", MINUTE)
        store.note_hold("apr_1", "a", MINUTE)
        assert store.is_counted_hold("apr_1")
    with unit() as store:
        assert store.is_counted_hold("apr_1")
        for _ in range(2):
            store.give_back_hold("apr_1")
            store.give_back_hold("apr_2")
        assert store.calls_of("a", NOW)[0] == 0
    with unit() as store:
        assert not store.is_counted_hold("apr_1")
        assert store.calls_of("a", NOW)[0] == 0


def test_leases_count_while_they_live_in_their_epoch(unit: UnitOfStore) -> None:
    with unit() as store:
        store.add_session("a", "ses_1", 0, NOW + 30)
        store.add_session("a", "ses_2", 0, NOW + 60)
        assert store.sessions_of("a", 0, NOW) == (2, 30)
    with unit() as store:
        assert store.sessions_of("a", 0, NOW) == (2, 30)
        assert store.sessions_of("a", 0, NOW + 30) == (1, 30)
        assert store.sessions_of("a", 1, NOW) == store.sessions_of("b", 0, NOW) == (0, None)


def test_a_session_that_is_extended_counts_once_and_ends_later(unit: UnitOfStore) -> None:
    with unit() as store:
        store.add_session("a", "ses_1", 0, NOW + 30)
    with unit() as store:
        store.extend_session("a", "ses_1", 0, NOW + 60)
        assert store.sessions_of("a", 0, NOW) == (1, 60)
    with unit() as store:
        assert store.sessions_of("a", 0, NOW + 30) == (1, 30)
        store.end_session("ses_1", "a", 0, NOW + 60)
    with unit() as store:
        assert store.sessions_of("a", 0, NOW) == (0, None)


def test_the_last_session_of_each_holder_is_kept_and_follows(unit: UnitOfStore) -> None:
    first, second = LastSession("ses_1", 0, NOW + 300.5), LastSession("ses_2", 3, NOW + 600.0)
    with unit() as store:
        assert store.last_session("a") is None
        store.keep_session("a", first)
        assert store.last_session("a") == first
    with unit() as store:
        assert (store.last_session("a"), store.last_session("b")) == (first, None)
        store.keep_session("a", second)
        store.keep_session("b", first)
    with unit() as store:
        assert (store.last_session("a"), store.last_session("b")) == (second, first)


def test_a_store_that_is_there_is_seen_to_be(unit: UnitOfStore) -> None:
    with unit() as store:
        store.look()


def test_an_approval_is_found_as_it_was_stored(unit: UnitOfStore) -> None:
    stored = approval()
    with unit() as store:
        assert store.hold("apr_1") is None
        store.store_hold(stored)
        assert store.hold("apr_1") == stored
        assert store.hold_state("apr_1") == msgspec.structs.replace(stored, body="")
    with unit() as store:
        assert store.hold_state("apr_1") == msgspec.structs.replace(stored, body="")
        assert store.hold("apr_1") == stored
        assert store.hold_state("apr_nothing") is None
        of_call = (stored.session_id, stored.action_id, stored.request_hash)
        assert store.pending_hold(*of_call, MOMENT) == stored
        assert store.pending_hold(*of_call, Moment(NOW + 60, 0)) is None
        assert store.pending_hold(*of_call, Moment(NOW, 1)) is None
        for at in range(3):
            other = ["another" if place == at else word for place, word in enumerate(of_call)]
            assert store.pending_hold(other[0], other[1], other[2], MOMENT) is None


def test_pending_holds_are_counted_by_session_by_principal_and_in_all(unit: UnitOfStore) -> None:
    records = [
        approval("apr_1", session_id="s1", principal="a", expires_at=NOW + 10, created_at=NOW - 50),
        approval("apr_2", session_id="s1", principal="a", expires_at=NOW + 20, created_at=NOW - 40),
        approval("apr_3", session_id="s2", principal="b", expires_at=NOW + 5, created_at=NOW - 55),
        approval("apr_4", session_id="s2", principal="b", epoch=3),
    ]
    sizes = [len(record.body.encode()) for record in records]
    with unit() as store:
        for record in records:
            store.store_hold(record)
    with unit() as store:
        assert store.waiting_of_session("s1", MOMENT) == Waiting(2, sum(sizes[:2]), NOW + 10)
        assert store.waiting_of("b", MOMENT) == Waiting(1, sizes[2], NOW + 5)
        assert store.waiting(MOMENT) == Waiting(3, sum(sizes[:3]), NOW + 5)
        assert store.waiting_of("c", MOMENT) == Waiting(0, 0, None)
        assert store.count_pending(MOMENT) == (3, NOW - 55)
        assert store.count_pending(Moment(NOW, 9)) == (0, None)
        store.move_hold("apr_1", PENDING, CLAIMED, outcome="{}", holder="front-1")
        assert store.waiting(MOMENT).number == 2


def test_an_approval_moves_from_where_it_is_and_with_its_end_loses_the_request(unit: UnitOfStore) -> None:
    stored = approval()
    with unit() as store:
        store.store_hold(stored)
    with unit() as store:
        assert store.move_hold("apr_1", CLAIMED, APPROVED, outcome="{}") is None
        assert store.move_hold("apr_0", PENDING, CLAIMED, outcome="{}") is None
        claimed = store.move_hold("apr_1", PENDING, CLAIMED, outcome='{"claimed_by":"o"}', holder="front-1")
        assert claimed == msgspec.structs.replace(
            stored, state=CLAIMED, holder="front-1", outcome='{"claimed_by":"o"}'
        )  # fmt: skip
        assert store.pending_hold(stored.session_id, stored.action_id, stored.request_hash, MOMENT) is None
    with unit() as store:
        assert store.claimed_by("front-1", ()) == store.claimed_by_others(("front-2",)) == [claimed]
        assert store.claimed_by("front-1", ("apr_1",)) == store.claimed_by_others(("front-1",)) == []
        assert store.claimed_by("front-2", ()) == []
    with unit() as store:
        ended = store.move_hold("apr_1", CLAIMED, DENIED, outcome='{"deny_reason":"no"}')
        assert ended is not None
        assert (ended.state, ended.holder, ended.outcome) == (DENIED, None, '{"deny_reason":"no"}')
        assert ended.body != stored.body
    with unit() as store:
        assert store.hold("apr_1") == ended
        assert store.claimed_by_others(()) == []
        assert store.waiting(MOMENT) == Waiting(0, 0, None)


def test_claims_are_listed_oldest_first(unit: UnitOfStore) -> None:
    with unit() as store:
        for number, earlier in enumerate((3, 7, 5)):
            store.store_hold(approval(f"apr_{number}", created_at=NOW - earlier))
            store.move_hold(f"apr_{number}", PENDING, CLAIMED, outcome="{}", holder="front-1")
    with unit() as store:
        ids = [record.approval_id for record in store.claimed_by("front-1", ())]
        assert ids == [record.approval_id for record in store.claimed_by_others(())] == ["apr_1", "apr_2", "apr_0"]


def test_due_holds_are_listed_up_to_a_frames_size_and_at_least_one(unit: UnitOfStore) -> None:
    body = json.dumps({"plan": {"request": "x" * (TOLD_CHARACTERS // 2)}})
    for number in range(2):
        with unit() as store:
            store.store_hold(approval(f"apr_{number}", body=body, expires_at=NOW - 9 + number))
    told = []
    for _ in range(3):
        with unit() as store:
            due = [record.approval_id for record in store.due_holds(MOMENT, 9)]
            told.append(due)
            for approval_id in due:
                store.move_hold(approval_id, PENDING, EXPIRED, outcome="{}")
    assert told == [["apr_0"], ["apr_1"], []]


def test_a_revoked_session_counts_neither_as_a_session_nor_by_its_holds(unit: UnitOfStore) -> None:
    with unit() as store:
        for record in (approval("apr_1"), approval("apr_2", session_id="ses_2")):
            store.store_hold(record)
        for session_id in ("ses_1", "ses_2"):
            store.confirm_session(session_id)
            store.add_session("uid:1000", session_id, 0, NOW + 300)
    with unit() as store:
        store.end_session("ses_1", "uid:1000", 0, NOW + 300)
        assert store.waiting_of_session("ses_1", MOMENT) == Waiting(0, 0, None)
    with unit() as store:
        assert store.sessions_of("uid:1000", 0, NOW)[0] == 1
        assert store.waiting(MOMENT).number == 1
        assert [due.approval_id for due in store.due_holds(MOMENT, 5)] == ["apr_1"]
        assert store.move_hold("apr_1", PENDING, EXPIRED, outcome="{}") is not None


def test_those_whose_time_is_over_are_due_before_those_of_another_epoch(unit: UnitOfStore) -> None:
    records = [
        approval("apr_1", expires_at=NOW - 1), approval("apr_2", expires_at=NOW - 2),
        approval("apr_3", epoch=5), approval("apr_4"),
    ]  # fmt: skip
    with unit() as store:
        for record in records:
            store.store_hold(record)
    with unit() as store:
        assert [due.approval_id for due in store.due_holds(MOMENT, 5)] == ["apr_2", "apr_1"]
        assert [due.approval_id for due in store.due_holds(MOMENT, 1)] == ["apr_2"]
        for approval_id in ("apr_1", "apr_2"):
            store.move_hold(approval_id, PENDING, EXPIRED, outcome="{}")
        assert [due.approval_id for due in store.due_holds(MOMENT, 5)] == ["apr_3"]


@pytest.fixture
def listed(unit: UnitOfStore) -> UnitOfStore:
    """A store with approvals of three principals, newest last."""
    with unit() as store:
        for number, principal in enumerate("aaabbc"):
            store.store_hold(approval(f"apr_{number}", principal=principal, created_at=NOW + number))
    with unit() as store:
        store.move_hold("apr_0", PENDING, EXPIRED, outcome="{}")
    return unit


@pytest.mark.parametrize(("asked", "total", "ids"), [
    (ListHolds(None, 10), 6, "543210"),
    (ListHolds(None, 3), 6, "543"),
    (ListHolds(None, 3, in_turns=True), 6, "542"),
    (ListHolds(None, 4, in_turns=True), 6, "5432"),
    (ListHolds(("pending",), 10), 5, "54321"),
    (ListHolds(("expired",), 10), 1, "0"),
    (ListHolds(("expired", "pending"), 10), 6, "543210"),
    (ListHolds(None, 10, principal="a"), 3, "210"),
    (ListHolds(None, 2, principal="a"), 3, "21"),
    (ListHolds(None, 10, before=NOW + 2), 2, "10"),
    (ListHolds(None, 2, action_id="text_digest"), 6, "54"),
    (ListHolds((), 10), 0, ""),
    (ListHolds(None, 10, action_id="none"), 0, ""),
])  # fmt: skip
def test_a_list_is_newest_first_and_in_turns_no_principal_hides_another(
    listed: UnitOfStore, asked: ListHolds, total: int, ids: str
) -> None:
    with listed() as store:
        answer = store.list_holds(asked, Moment(NOW + 10, 0))
    assert answer.total == total
    assert [record.approval_id for record in answer.approvals] == [f"apr_{number}" for number in ids]


def test_in_another_epoch_what_waited_is_listed_as_expired(listed: UnitOfStore) -> None:
    with listed() as store:
        answer = store.list_holds(ListHolds(None, 10), Moment(NOW + 10, 1))
        assert {record.state for record in answer.approvals} == {EXPIRED}
        assert store.list_holds(ListHolds(("pending",), 10), Moment(NOW + 10, 1)).total == 0


def test_approvals_that_ended_long_ago_are_forgotten(listed: UnitOfStore) -> None:
    with listed() as store:
        store.sweep(NOW, NOW + 61)
    with listed() as store:
        answer = store.list_holds(ListHolds(None, 10), Moment(NOW + 10, 0))
        assert [record.approval_id for record in answer.approvals] == [f"apr_{number}" for number in "54321"]


def test_a_sweep_takes_a_hundred_approvals_that_ended_and_says_whether_there_may_be_more(unit: UnitOfStore) -> None:
    with unit() as store:
        for number in range(101):
            store.store_hold(approval(f"apr_{number}"))
    with unit() as store:
        for number in range(101):
            store.move_hold(f"apr_{number}", PENDING, EXPIRED, outcome="{}")
    for left, has_more in ((1, True), (0, False)):
        with unit() as store:
            assert store.sweep(NOW, NOW + 61) == has_more
        with unit() as store:
            assert store.list_holds(ListHolds(None, 10), MOMENT).total == left
