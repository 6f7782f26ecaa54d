"""ListSessions and RevokeSession: who has a lease, and what is left of one that an operator has ended."""

from typing import Any

import pytest
from msgspec.structs import replace

from ipc.evidence.events import AuditEvent
from ipc.operations.calls import Closed, Refusal
from ipc.operations.holds import DueHolds, GetHold, MoveHold
from ipc.operations.leases import ListSessions, SessionRevocation, SessionView
from ipc.process.clock import iso
from ipc.texts.identifiers import new
from tests.notary.conftest import StartNotary
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    call_event,
    make_approval,
    make_hold,
    make_issue,
    make_note,
    make_open,
    make_revocation,
    make_revoke,
)
from tests.support.asking import Asker, Told
from tests.support.notary_thread import LIMITS


def issue(front: Asker, principal: str = "uid:1000", **given: Any) -> Any:
    event = AuditEvent(
        event_type="LeaseIssued", trace_id=new("trc_"), principal=principal, decision="allow",
        identity_method="peercred",
    )  # fmt: skip
    return front.ask(make_issue(principal=principal, event=event, **given))


def held(front: Asker, session_id: str) -> Any:
    return front.ask(make_hold(make_approval(session_id=session_id)))


def called(front: Asker, session_id: str, **given: Any) -> Any:
    return front.ask(make_open(event=call_event(session_id=session_id), **given))


def ids(front: Asker, **given: Any) -> list[str]:
    return [one.session_id for one in front.ask(ListSessions(**{"limit": 50} | given)).sessions]


def paged_ids(front: Asker, limit: int) -> list[str]:
    """Those of all pages, which have at most so many each."""
    page = front.ask(ListSessions(limit))
    found = [one.session_id for one in page.sessions]
    while page.next is not None:
        page = front.ask(ListSessions(limit, after=page.next))
        found += [one.session_id for one in page.sessions]
    return found


def test_a_session_is_listed_with_all_that_says_whose_it_is_and_what_it_has_left(notary: Running) -> None:
    front = notary.front
    issued = issue(front, max_calls=12, uid=1004)
    called(front, issued.session_id, has_budget=True)
    held(front, issued.session_id)
    (shown,) = front.ask(ListSessions(10)).sessions
    assert shown == SessionView(
        session_id=issued.session_id, lease_jti=issued.lease_jti, principal="uid:1000", owner=None,
        identity_method="peercred", uid=1004, issued_at=iso(NOW), expires_at=issued.expires_at, max_calls=12,
        calls_remaining=11, pending_approvals=1,
    )  # fmt: skip


def test_sessions_of_which_nothing_is_counted_say_so(notary: Running) -> None:
    issue(notary.front)
    (shown,) = notary.front.ask(ListSessions(10)).sessions
    assert (shown.max_calls, shown.calls_remaining, shown.uid, shown.pending_approvals) == (None, None, None, 0)


def test_leases_that_were_refused_or_do_not_say_when_they_end_are_passed_over(notary: Running) -> None:
    front = notary.front
    front.ask(make_note(event_type="LeaseIssued", decision="deny", session_id=None))
    old = issue(front).session_id
    assert ids(front) == [old], "and its event is in its table"
    notary.execute("UPDATE events SET bytes = CAST(json_remove(CAST(bytes AS TEXT), '$.lease') AS BLOB)")
    late = issue(front).session_id
    assert ids(front) == [late]
    assert front.ask(make_revocation(old)) is None


def test_an_ended_session_is_not_listed(notary: Running) -> None:
    front = notary.front
    issue(front)
    front.ask(make_revoke())
    late = issue(front).session_id
    assert ids(front) == [late]
    notary.clock.time = NOW + 300
    assert ids(front) == []


def test_pages_are_newest_first_and_miss_nothing_though_all_are_of_one_moment(notary: Running) -> None:
    front = notary.front
    made = [issue(front).session_id for _ in range(7)]
    assert paged_ids(front, 3) == made[::-1]


def test_one_principal_is_found_among_many(notary: Running) -> None:
    front = notary.front
    for name in ("uid:1", "uid:2", "uid:1"):
        issue(front, name)
    assert len(ids(front, principal="uid:1")) == 2
    assert ids(front, principal="uid:3") == []


def test_a_page_looks_at_so_many_leases_and_says_that_there_are_more(start_notary: StartNotary) -> None:
    front = start_notary(limits=replace(LIMITS, leases_at_once=2)).front
    wanted = issue(front, "uid:1").session_id
    for _ in range(3):
        issue(front, "uid:2")
    page = front.ask(ListSessions(50, principal="uid:1"))
    assert page.sessions == []
    assert page.next is not None
    assert ids(front, principal="uid:1", after=page.next) == [wanted]


@pytest.mark.parametrize("after", ["", "1", "1.x", "-1.2", "1.2.3", "9" * 20 + ".1"])
def test_a_page_that_begins_nowhere_is_refused(notary: Running, after: str) -> None:
    with pytest.raises(Told, match="refused"):
        notary.front.ask(ListSessions(1, after=after))


def test_no_call_of_a_revoked_session_is_opened_and_others_are(notary: Running) -> None:
    front = notary.front
    lease, other = issue(front), issue(front).session_id
    ended = lease.session_id
    assert front.ask(make_revocation(ended)) == SessionRevocation("uid:1000", iso(NOW + 300))
    event = notary.last_event()
    assert (event["event_type"], event["session_id"], event["principal"]) == ("SessionRevoked", ended, "operator:o")
    told = {"principal": "uid:1000", "lease_jti": lease.lease_jti, "expires_at": iso(NOW + 300)}
    assert event["change"] == told
    assert called(front, ended) == Refusal("invalid_lease", "its session was revoked")
    assert notary.last_event()["error_code"] == "invalid_lease"
    assert isinstance(called(front, other), Closed)
    assert ids(front) == [other]


def test_every_front_gets_a_session_revocation_before_the_answer(notary: Running) -> None:
    front, other = notary.front, notary.attach("another")
    ended = issue(front).session_id
    front.ask(make_revocation(ended))
    assert front.in_force[-1].revoked == (ended,)
    other.ask(ListSessions(1))
    assert [told.revoked for told in other.in_force] == [(), (ended,)]


def test_to_revoke_again_writes_nothing_and_says_so(notary: Running) -> None:
    front = notary.front
    ended = issue(front).session_id
    front.ask(make_revocation(ended))
    before = notary.last_event()
    assert front.ask(make_revocation(ended)).was_revoked
    assert notary.last_event() == before


def test_a_session_that_does_not_live_can_not_be_revoked(notary: Running) -> None:
    front = notary.front
    over, of_before = issue(front).session_id, issue(front).session_id
    assert front.ask(make_revocation("ses_unknown")) is None
    front.ask(make_revoke())
    assert front.ask(make_revocation(of_before)) is None
    notary.clock.time = NOW + 300
    assert front.ask(make_revocation(over)) is None


def test_a_revocation_outlives_the_notary_and_is_forgotten_with_the_lease(notary: Running) -> None:
    ended = issue(notary.front).session_id
    notary.front.ask(make_revocation(ended))
    front = notary.restart()
    assert called(front, ended) == Refusal("invalid_lease", "its session was revoked")
    assert front.in_force[-1].revoked == (ended,)
    notary.clock.time = NOW + 360
    late = issue(front).session_id
    front.ask(make_revocation(late))
    assert front.in_force[-1].revoked == (late,)


def test_holds_of_a_revoked_session_expire_and_can_not_be_claimed(notary: Running) -> None:
    front = notary.front
    ended = issue(front).session_id
    mine = held(front, ended).approval.approval_id
    other = front.ask(make_hold()).approval.approval_id
    front.ask(make_revocation(ended))
    assert front.ask(GetHold(mine)).state == "expired"
    assert front.ask(GetHold(other)).state == "pending"
    assert [one.approval_id for one in front.ask(DueHolds(10))] == [mine]
    claim = MoveHold(mine, "pending", "claimed", '{"claimed_by":"o"}', front.front_id)
    assert front.ask(claim) is None


def test_no_more_are_revoked_at_once_than_every_front_can_be_told(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, revoked_sessions=1))
    front = notary.front
    first, second = (issue(front).session_id for _ in range(2))
    front.ask(make_revocation(first))
    assert front.ask(make_revocation(second)).is_full
    assert isinstance(called(front, second), Closed)
    notary.clock.time = NOW + 360
    third = issue(front).session_id
    assert not front.ask(make_revocation(third)).is_full


def test_a_revoked_session_counts_no_more_for_its_principal(notary: Running) -> None:
    front = notary.front
    ended = issue(front, max_sessions=1).session_id
    front.ask(make_revocation(ended))
    assert issue(front, max_sessions=1).session_id != ended
