"""MoveHold: compare and swap, with the event and the refund; lists of holds."""

import time

import pytest

from ipc.backends.store import ApprovalRecord
from ipc.operations.holds import DueHolds, GetHold, ListHolds, MoveHold, OrphanedHolds, UnsettledHolds
from ipc.operations.leases import ReadBudget
from ipc.operations.status import ReadStore, StoreStatus
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    answered,
    by_alice,
    changed,
    held_and_claimed,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_issue,
    make_revoke,
    outcome_text,
    record_call,
)
from tests.support.asking import Asker, Told


def held(front: Asker, *, has_budget: bool = False, **given: object) -> ApprovalRecord:
    approval = make_approval(has_budget=has_budget, **given)
    front.ask(make_hold(approval, has_budget=has_budget))
    return approval


def move(front: Asker, asked: MoveHold) -> ApprovalRecord | None:
    moved: ApprovalRecord | None = front.ask(asked)
    return moved


def test_a_move_changes_state_outcome_and_holder_and_nothing_else(notary: Running) -> None:
    front = notary.front
    approval = held(front)
    moved = move(front, make_claim(approval))
    claimed = changed(approval, state="claimed", outcome='{"claimed_by":"alice"}', holder="front-1")
    assert moved == answered(claimed)
    assert front.ask(GetHold(approval.approval_id)) == claimed
    denied = changed(make_denial(approval), outcome='{"claimed_by":"alice","deny_reason":"no"}')
    assert move(front, denied) == answered(approval, state="denied", outcome=denied.outcome)


def test_a_move_that_wins_writes_its_event_and_gives_its_call_back_and_one_that_loses_does_neither(
    notary: Running,
) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    approval = held(front, has_budget=True, session_id=session_id)
    notary.clock.time = NOW + 300
    for wins in (True, False):
        assert (move(front, make_expiry(approval, refunds=True)) is not None) is wins
        assert front.ask(ReadBudget(session_id)).remaining == 2
    assert [event["event_type"] for event in notary.events()] == ["LeaseIssued", "ActionCall", "ApprovalExpired"]


def test_a_call_is_not_given_back_that_was_not_taken(notary: Running) -> None:
    approval = held(notary.front)
    notary.clock.time = NOW + 300
    with pytest.raises(Told, match="given back that was not taken"):
        move(notary.front, make_expiry(approval, refunds=True))
    assert notary.front.ask(GetHold(approval.approval_id)) == approval


def test_a_claim_whose_call_has_a_receipt_ends_as_approved_with_that_receipt_alone(notary: Running) -> None:
    front = notary.front
    approval = held_and_claimed(front)
    _, closed = record_call(front, approver=by_alice(approval))
    with notary.stranger() as file:
        claimed = ("claimed", "front-1", outcome_text(claimed_by="alice"))
        file.execute("UPDATE approvals SET state = ?, holder = ?, outcome = ?", claimed)

    def ends_with(receipt_id: str) -> ApprovalRecord | None:
        outcome = outcome_text(claimed_by="alice", receipt_id=receipt_id)
        return move(front, MoveHold(approval.approval_id, "claimed", "approved", outcome))

    with pytest.raises(Told, match="an end without the receipt that it names"):
        ends_with("rcpt_of_another")
    moved = ends_with(closed.receipt_id)
    assert moved is not None
    assert (moved.state, moved.holder) == ("approved", None)


@pytest.mark.parametrize(("later", "is_claimed"), [(299.999, True), (300.0, False)])
def test_a_claim_needs_time_that_is_left_and_an_expiry_that_none_is(
    notary: Running, later: float, is_claimed: bool
) -> None:
    first, second = held(notary.front), held(notary.front)
    notary.clock.time = NOW + later
    assert (move(notary.front, make_claim(first)) is not None) is is_claimed
    assert (move(notary.front, make_expiry(second)) is None) is is_claimed


def test_a_hold_of_another_epoch_can_only_expire_whatever_a_front_asks(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    approval = held(front, has_budget=True, session_id=session_id)
    assert front.ask(DueHolds(5)) == []
    front.ask(make_revoke())
    assert move(front, make_claim(approval)) is None
    assert front.ask(GetHold(approval.approval_id)).state == "expired"
    assert front.ask(DueHolds(5)) == [approval]
    assert move(front, make_expiry(approval, refunds=True)) is not None
    assert move(front, make_expiry(approval, refunds=True)) is None
    assert front.ask(DueHolds(5)) == []
    assert front.ask(ReadBudget(session_id)).remaining == 2


def test_exactly_one_of_several_operators_wins(notary: Running) -> None:
    fronts, approval = {"front-1": notary.front, "another": notary.attach("another")}, held(notary.front)
    asked = [
        (front, front.send(make_expiry(approval), *[make_claim(approval, name, f"op-{n}") for n in range(10)]))
        for name, front in fronts.items()
    ]
    winners = [one for front, numbers in asked for number in numbers if (one := front.answer(number)) is not None]
    assert winners == [answered(notary.front.ask(GetHold(approval.approval_id)))]
    assert winners[0].state == "claimed"


def test_a_list_shows_only_the_listed_part_of_a_body(notary: Running) -> None:
    held(notary.front)
    (shown,) = notary.front.ask(ListHolds(None, 1)).approvals
    assert '"principal":"uid:1000"' in shown.body
    assert "request" not in shown.body


def test_claims_of_fronts_that_are_gone_are_found(notary: Running) -> None:
    front, leaving = notary.front, {"f1": notary.attach("f1"), "f2": notary.attach("f2")}
    for name, asker in {"front-1": front, **leaving}.items():
        assert move(asker, make_claim(held(asker), name))
    held(front)

    def orphans(*live: str) -> set[str | None]:
        return {record.holder for record in front.ask(OrphanedHolds(live))}

    assert orphans() == set(), "whoever is attached lives, whatever the asking front was told at its start"
    for asker in leaving.values():
        asker.close()
        notary.thread.hears()
    assert (orphans("f1"), orphans(), orphans("f1", "f2")) == ({"f2"}, {"f1", "f2"}, set())


def test_a_front_finds_what_it_has_claimed_and_no_task_of_it_settles(notary: Running) -> None:
    front, other = notary.front, notary.attach("f1")
    body = '{"plan":{"principal":"uid:1000","request":"' + "x" * 3_000_000 + '"}}'
    mine = [held_and_claimed(front, approval_id=f"apr_{number}", body=body).approval_id for number in range(4)]
    theirs = held_and_claimed(other, "f1", approval_id="apr_other").approval_id

    def unsettled(asker: Asker, *at_work: str) -> list[str]:
        return [record.approval_id for record in asker.ask(UnsettledHolds(at_work))]

    assert unsettled(front) == mine[:1]
    # Holds that are being worked on never hide the others.
    assert unsettled(front, *mine[:3]) == mine[3:]
    assert unsettled(front, *mine) == []
    assert unsettled(other) == [theirs]


def test_those_that_wait_are_counted_and_listed_though_the_clock_is_wrong(notary: Running) -> None:
    front = notary.front
    notary.clock.time = now = time.time()
    approval = held(front, created_at=now, expires_at=now + 300)
    notary.clock.wrong = "it has stepped back"
    assert front.ask(ReadStore()) == StoreStatus(1, now, 0)
    assert [one.approval_id for one in front.ask(ListHolds(None, 5)).approvals] == [approval.approval_id]
