"""A front that was taken over, against a real notary: holds, claims and ends of its own making.

An approval moves along the table and nowhere else, for the front that has it, and lets one call run once.
"""

from typing import Any

import msgspec
import pytest

from ipc.backends.store import ApprovalRecord
from ipc.operations.calls import Approver
from ipc.operations.holds import GetHold, MoveHold
from tests.support.hostile_front import (
    a_claim,
    a_hold,
    an_end,
    an_open,
    assert_refused,
    call_event,
    claimed,
    events,
    granted,
    held,
    left,
    now_of,
    opened,
    terms,
    with_budget,
)
from tests.support.played_supervisor_of_notary import (
    PlayedFront,
    PlayedSupervisor,
)
from tests.support.played_workers import sound_result

# ------------------------------------------------------------------ approvals


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "claimed"}, {"state": "approved"}, {"state": "made up"}, {"holder": "front-1-a"},
        {"outcome": '{"receipt_id":"rcpt_1"}'}, {"session_id": "ses_2"}, {"action_id": "another"},
        {"request_hash": "another"}, {"expires_at": 1e12},
    ],
)  # fmt: skip
def test_a_hold_begins_pending_and_is_that_of_its_call(
    shared_notary: PlayedSupervisor, new_front: PlayedFront, changes: dict[str, Any]
) -> None:
    asked = a_hold(session_id=with_budget(new_front, 1))
    changed = msgspec.structs.replace(asked, approval=msgspec.structs.replace(asked.approval, **changes))
    assert_refused(shared_notary, new_front, changed)


def test_a_hold_takes_no_other_holds_id(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    approval_id, _ = held(new_front)
    event = call_event(request_hash="sha256:another")
    asked = a_hold(approval_id, event=event, has_budget=False)
    approval = msgspec.structs.replace(asked.approval, request_hash="sha256:another")
    assert_refused(shared_notary, new_front, msgspec.structs.replace(asked, approval=approval))


STATES = ("pending", "claimed", "approved", "denied", "expired", "failed", "made up")
MOVES = {
    ("pending", "claimed"), ("pending", "expired"), ("claimed", "approved"), ("claimed", "denied"),
    ("claimed", "failed"),
}  # fmt: skip


def test_an_approval_makes_no_move_that_the_table_does_not_have(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    approval_id, session_id = held(new_front)
    for before in STATES:
        for after in STATES:
            if (before, after) not in MOVES:
                assert_refused(shared_notary, new_front, MoveHold(approval_id, before, after, "{}", refunds=True))
    record: ApprovalRecord = new_front.value(GetHold(approval_id), ApprovalRecord)
    assert (record.state, left(new_front, session_id)) == ("pending", 1)


def test_a_claim_is_for_the_front_that_asks_and_says_who_claimed(
    shared_notary: PlayedSupervisor, new_front: PlayedFront
) -> None:
    approval_id, _ = held(new_front)
    assert_refused(
        shared_notary, new_front,
        a_claim(new_front, approval_id, holder="front-2-b"), a_claim(new_front, approval_id, holder=None),
        a_claim(new_front, approval_id, outcome="{}"), a_claim(new_front, approval_id, outcome="nonsense"),
        a_claim(new_front, approval_id, outcome='{"claimed_by":"op","receipt_id":"rcpt_1"}'),
        a_claim(new_front, approval_id, outcome='{"claimed_by":"op","more":1}'),
        a_claim(new_front, approval_id, event=granted("apr_another")),
        a_claim(new_front, approval_id, event=granted(approval_id, decision="deny")),
        a_claim(new_front, approval_id, event=granted(approval_id, event_type="ActionCall")),
        a_claim(new_front, approval_id, refunds=True),
    )  # fmt: skip


def test_time_alone_says_whether_a_hold_is_claimed_or_expires(new_front: PlayedFront) -> None:
    over, session_id = held(new_front, seconds=-1.0)
    live, _ = held(new_front)
    expired = granted(live, event_type="ApprovalExpired", decision="deny")
    assert new_front.value(a_claim(new_front, over)) is None
    assert new_front.value(MoveHold(live, "pending", "expired", "{}", event=expired, refunds=True)) is None
    expired = granted(over, event_type="ApprovalExpired", decision="deny")
    moved = new_front.value(MoveHold(over, "pending", "expired", "{}", event=expired, refunds=True), ApprovalRecord)
    assert (moved.state, left(new_front, session_id)) == ("expired", 2)
    assert new_front.value(MoveHold(over, "pending", "expired", "{}", event=expired, refunds=True)) is None
    assert left(new_front, session_id) == 2


def test_a_claim_ends_as_what_it_is(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    approval_id, session_id = claimed(new_front)
    told = call_event(decision="error", error_code="interrupted", approval_id=approval_id)
    failed = '{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z","error_code":"interrupted"}'
    assert_refused(
        shared_notary, new_front,
        an_end(approval_id, event=None), an_end(approval_id, event=granted(approval_id)),
        an_end(approval_id, outcome="{}"), an_end(approval_id, outcome='{"claimed_by":"another"}'),
        an_end(approval_id, outcome=failed), an_end(approval_id, holder="front-1-a"),
        an_end(approval_id, "failed", outcome=failed), an_end(approval_id, "failed", event=told),
        an_end(approval_id, "approved", event=None), an_end(approval_id, "approved", event=told),
        an_end(
            approval_id, "approved", event=None,
            outcome='{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z","receipt_id":"rcpt_1"}',
        ),
        an_end(approval_id, "failed", outcome=failed, event=msgspec.structs.replace(told, decision="allow")),
    )  # fmt: skip
    ended = new_front.value(an_end(approval_id, refunds=True), ApprovalRecord)
    assert (ended.state, left(new_front, session_id)) == ("denied", 2)


def test_a_claim_of_another_front_is_ended_by_that_one_while_it_lives(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    other = supervisor.attach("front-2-b")
    approval_id, _ = claimed(other)
    assert_refused(supervisor, front, an_end(approval_id, refunds=True))
    other.close()
    assert front.value(an_end(approval_id), ApprovalRecord).state == "denied"


def test_what_was_not_taken_is_not_given_back(supervisor: PlayedSupervisor, front: PlayedFront) -> None:
    session_id, now = with_budget(front, 2), now_of(front)
    opened(front, event=call_event(session_id=session_id), has_budget=True)
    asked = a_hold(session_id=session_id, has_budget=False)
    body = asked.approval.body.replace('"has_budget":true', '"has_budget":false')
    approval = msgspec.structs.replace(asked.approval, expires_at=now + 300, body=body)
    front.value(msgspec.structs.replace(asked, approval=approval))
    front.value(a_claim(front, approval.approval_id))
    assert_refused(supervisor, front, an_end(approval.approval_id, refunds=True))
    assert left(front, session_id) == 1


# ------------------------------------------------------------------ approved calls


def approver(approval_id: str, by: str = "op") -> Approver:
    return Approver(approval_id, by, "thumbprint", "jti")


def test_no_call_is_opened_on_an_approval_that_this_front_has_not_claimed(
    supervisor: PlayedSupervisor, front: PlayedFront
) -> None:
    other = supervisor.attach("front-2-b")
    pending, _ = held(front)
    others, _ = claimed(other)
    own, _ = claimed(front)
    assert_refused(
        supervisor, front, an_open(approver=approver("apr_none")), an_open(approver=approver(pending)),
        an_open(approver=approver(others)), an_open(approver=approver(own, "another")),
        an_open(approver=approver(own), terms=terms(plan_hash="sha256:" + "e" * 64)),
    )  # fmt: skip


def test_an_approval_is_executed_once(shared_notary: PlayedSupervisor, new_front: PlayedFront) -> None:
    approval_id, session_id = claimed(new_front)
    asked = opened(new_front, approver=approver(approval_id), has_budget=True)
    assert_refused(shared_notary, new_front, an_open(approver=approver(approval_id)))
    failed = '{"claimed_by":"op","claimed_at":"2026-01-01T00:00:00.000Z","error_code":"interrupted"}'
    assert_refused(shared_notary, new_front, an_end(approval_id, "failed", outcome=failed, event=None, refunds=True))
    closed = new_front.end(asked, sound_result())
    record: ApprovalRecord = new_front.value(GetHold(approval_id), ApprovalRecord)
    assert (record.state, msgspec.json.decode(record.outcome)["receipt_id"]) == ("approved", closed.receipt_id)
    assert_refused(shared_notary, new_front, an_open(approver=approver(approval_id)))
    (event,) = events(new_front, trace_id=asked.event.trace_id)
    assert (event["approval_id"], event["approved_by"], event["operator_proof_jti"]) == (approval_id, "op", "jti")
    assert left(new_front, session_id) == 1
