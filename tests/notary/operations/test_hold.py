"""Hold: proof, debit, hold and event, all or nothing; how many holds may wait, by number and by bytes."""

from collections.abc import Callable
from typing import Any

import pytest

from ipc.backends.store import ApprovalRecord
from ipc.operations.calls import ProofRecord, Refusal, UseProof
from ipc.operations.holds import GetHold, HoldInForce, ListHolds
from ipc.operations.leases import ReadBudget
from ipc.operations.status import ReadStore
from ipc.settings import ApprovalSettings
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import NOW, answered, make_approval, make_claim, make_hold, make_issue, make_revoke


def test_a_hold_is_stored_as_it_is_with_its_event_and_its_debit(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    approval = make_approval(session_id=session_id, body='{"é":"\\u0000","plan":{"principal":"uid:1000"}}')
    assert front.ask(make_hold(approval, has_budget=True)) == HoldInForce(answered(approval), is_repeated=False)
    assert front.ask(GetHold(approval.approval_id)) == approval
    assert front.ask(GetHold("apr_none")) is None
    assert front.ask(ReadBudget(session_id)).remaining == 1
    event = notary.last_event()
    assert (event["decision"], event["approval_id"], event.get("is_repeated")) == (
        "pending_approval", approval.approval_id, None,
    )  # fmt: skip
    assert (event["budgets_before"], event["budgets_after"]) == ({"calls_remaining": 2}, {"calls_remaining": 1})


def test_the_same_call_is_held_once_with_an_event_and_without_a_debit(notary: Running) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=2)).session_id
    first = make_approval(session_id=session_id, request_hash="r")
    again = make_approval(session_id=session_id, request_hash="r")
    front.ask(make_hold(first, has_budget=True))
    assert front.ask(make_hold(again, has_budget=True)) == HoldInForce(answered(first), is_repeated=True)
    assert front.ask(GetHold(again.approval_id)) is None
    assert front.ask(ReadBudget(session_id)).remaining == 1
    event = notary.last_event()
    assert (event["approval_id"], event["is_repeated"]) == (first.approval_id, True)


def test_a_session_has_a_bounded_number_of_holds_and_learns_when_one_ends(notary: Running) -> None:
    front = notary.front
    kept = [make_approval(expires_at=NOW + 300 + number) for number in range(3)]
    for approval in kept:
        assert isinstance(front.ask(make_hold(approval, limit=3)), HoldInForce)
    assert front.ask(make_hold(limit=3)) == Refusal(
        "too_many_pending_approvals", "3 holds of the session wait", retry_after=300
    )
    assert notary.last_event()["error_code"] == "too_many_pending_approvals"
    same = make_approval(request_hash=kept[1].request_hash)
    assert front.ask(make_hold(same, limit=3)).is_repeated
    assert isinstance(front.ask(make_hold(make_approval(session_id="ses_2"), limit=3)), HoldInForce)
    notary.clock.time = NOW + 300
    assert isinstance(front.ask(make_hold(make_approval(expires_at=NOW + 600), limit=3)), HoldInForce)


@pytest.mark.parametrize(
    ("spoil", "code"), [("proof", "replay_detected"), ("epoch", "invalid_lease"), ("budget", "budget_exhausted")]
)
def test_a_refused_hold_stores_nothing_and_has_one_event(notary: Running, spoil: str, code: str) -> None:
    front = notary.front
    session_id = front.ask(make_issue(max_calls=int(spoil != "budget"))).session_id
    asked = make_hold(make_approval(session_id=session_id), has_budget=True, proof=ProofRecord("p", NOW))
    if spoil == "proof":
        front.ask(UseProof(ProofRecord("p", NOW)))
    if spoil == "epoch":
        front.ask(make_revoke())
    before = len(notary.events())
    assert front.ask(asked).code == code
    assert front.ask(ListHolds(None, 9)).approvals == []
    assert len(notary.events()) == before + 1
    assert notary.last_event()["error_code"] == code
    assert front.ask(ReadBudget(session_id)).remaining == int(spoil != "budget")


def test_holds_of_one_call_at_the_same_time_are_one(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    session_id = notary.front.ask(make_issue(max_calls=9)).session_id
    asked = [
        (front, front.send(*[
            make_hold(make_approval(session_id=session_id, request_hash="r"), has_budget=True) for _ in range(10)
        ]))
        for front in fronts
    ]  # fmt: skip
    held = [front.answer(number) for front, numbers in asked for number in numbers]
    assert sorted(one.is_repeated for one in held) == [False, *[True] * 19]
    assert len({one.approval.approval_id for one in held}) == 1
    assert notary.front.ask(ReadBudget(session_id)).remaining == 8


@pytest.fixture
def tight(start_notary: StartNotary) -> Callable[..., Running]:
    """A notary with these caps."""
    return lambda **caps: start_notary("tight", approvals=ApprovalSettings(**caps))


def hold_of(principal: str, session: str = "ses_1", **given: Any) -> ApprovalRecord:
    return make_approval(principal=principal, session_id=session, **given)


def flood(notary: Running, principal: str, tries: int, **given: Any) -> int:
    """Ask for so many holds from as many sessions as it takes; how many were stored."""
    asked = [make_hold(hold_of(principal, f"ses_{principal}_{n // 20}", **given)) for n in range(tries)]
    return sum(isinstance(notary.front.ask(one), HoldInForce) for one in asked)


def test_one_principal_with_many_sessions_can_not_keep_others_from_waiting(tight: Callable[..., Running]) -> None:
    notary = tight(max_pending=40, max_pending_per_principal=20)
    assert flood(notary, "flood", 60) == 20
    assert flood(notary, "victim", 5) == 5
    assert notary.front.ask(ReadStore()).pending == 25


def test_the_default_caps_stop_a_flood_at_a_hundred(notary: Running) -> None:
    assert flood(notary, "flood", 120) == 100
    assert flood(notary, "victim", 1) == 1


def test_many_principals_together_leave_the_last_quarter_to_those_who_have_few(tight: Callable[..., Running]) -> None:
    notary = tight(max_pending=40, max_pending_per_principal=20)
    assert [flood(notary, f"flood-{n}", 30) for n in range(3)] == [20, 10, 2]
    assert [flood(notary, f"victim-{n}", 30) for n in range(4)] == [2, 2, 2, 2]
    assert flood(notary, "late", 1) == 0, "the whole is full"


def test_bytes_are_bounded_like_numbers(tight: Callable[..., Running]) -> None:
    notary = tight(max_pending_bytes=400_000, max_pending_bytes_per_principal=200_000)

    def large(principal: str) -> str:
        return f'{{"plan":{{"principal":"{principal}","request":"{"é" * 30_000}"}}}}'

    assert flood(notary, "flood", 9, body=large("flood")) == 3
    assert flood(notary, "victim", 1, body=large("victim")) == 1
    assert flood(notary, "flood", 1) == 1, "there is room for a small one"


def test_the_last_quarter_of_all_bytes_is_for_those_who_have_few(tight: Callable[..., Running]) -> None:
    notary = tight(max_pending_bytes=400_000, max_pending_bytes_per_principal=200_000)
    floods = [
        flood(notary, name, 9, body=f'{{"plan":{{"principal":"{name}","request":"{"x" * 60_000}"}}}}')
        for name in ("one", "two", "three", "four", "five")
    ]
    assert floods == [3, 1, 1, 1, 0], "beyond 300,000 bytes each has its first one, as long as that fits"


def test_bytes_may_be_used_to_the_last_one(tight: Callable[..., Running]) -> None:
    bodies = [f'{{"plan":{{"principal":"uid:{size}","request":"{"x" * size}"}}}}' for size in (100, 101)]
    notary = tight(max_pending_bytes_per_principal=len(bodies[0]))
    assert [flood(notary, f"uid:{size}", 1, body=body) for size, body in zip((100, 101), bodies, strict=True)] == [1, 0]


def test_a_refused_hold_costs_nothing_and_its_event_says_which_bound_and_for_how_long(
    tight: Callable[..., Running],
) -> None:
    notary = tight(max_pending=4, max_pending_per_principal=2)
    front, principal = notary.front, "uid:1000"
    for later in (7, 9):
        front.ask(make_hold(hold_of(principal, f"ses_{later}", expires_at=NOW + later)))
    session_id = front.ask(make_issue(max_calls=3)).session_id
    refused = front.ask(make_hold(hold_of(principal, session_id), has_budget=True))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.retry_after) == ("too_many_pending_approvals", 7)
    event = notary.last_event()
    assert (event["decision"], event["error_code"]) == ("deny", "too_many_pending_approvals")
    assert event["reason"].startswith("2 holds of the principal wait")
    assert front.ask(ReadBudget(session_id)).remaining == 3
    assert front.ask(ListHolds(None, 9)).total == 2


@pytest.mark.parametrize("end", ["claimed", "over", "revoked"])
def test_an_ended_hold_makes_room_at_once(tight: Callable[..., Running], end: str) -> None:
    notary = tight(max_pending=4, max_pending_per_principal=1)
    first = make_approval()
    notary.front.ask(make_hold(first))
    assert isinstance(notary.front.ask(make_hold()), Refusal)
    epoch = 0
    if end == "claimed":
        notary.front.ask(make_claim(first))
    elif end == "over":
        notary.clock.time = NOW + 300
    else:
        notary.front.ask(make_revoke())
        epoch = 1
    assert isinstance(
        notary.front.ask(make_hold(make_approval(epoch=epoch, expires_at=notary.clock.time + 300))), HoldInForce
    )


def test_a_front_can_not_count_a_hold_as_another_principals(notary: Running) -> None:
    approval = make_approval(principal="flood")
    for changes in ({"principal": "victim"}, {"epoch": 1}, {"body": '{"plan":{"principal":"victim"}}'}):
        asked = make_hold(approval)
        with pytest.raises(Exception, match="another principal"):
            notary.front.ask(type(asked)(asked.event, spoilt(approval, **changes), asked.epoch, asked.limit))


def spoilt(approval: ApprovalRecord, **changes: Any) -> ApprovalRecord:
    return make_approval(**{name: getattr(approval, name) for name in approval.__struct_fields__} | changes)
