"""Issue, Note, Revoke and ReadBudget: leases, events and the epoch, each with what belongs to it in one unit."""

import hashlib
from itertools import pairwise

import jwt
import msgspec
import pytest

from ipc.backends.store import Budget
from ipc.evidence.events import AuditEvent
from ipc.operations.evidence import WriteEvent
from ipc.operations.leases import ReadBudget, ReadEpoch
from ipc.process.clock import iso
from tests.notary.running import Running, stored, walk
from tests.notary.samples import NOW, make_issue, make_note, make_revoke, own_event
from tests.support.asking import Told


def test_a_lease_its_budget_and_its_event_name_each_other(notary: Running) -> None:
    issued = notary.front.ask(make_issue(max_calls=12))
    claims = jwt.decode(issued.lease_jwt, options={"verify_signature": False})
    assert (claims["session_id"], claims["jti"], claims["epoch"]) == (issued.session_id, issued.lease_jti, 0)
    assert issued.expires_at == iso(NOW + 300)
    assert notary.front.ask(ReadBudget(issued.session_id)) == Budget(found=True, debited=False, remaining=12)
    event = notary.last_event()
    assert (event["event_type"], event["session_id"], event["lease_jti"]) == (
        "LeaseIssued", issued.session_id, issued.lease_jti,
    )  # fmt: skip


def test_a_lease_without_a_budget_opens_none_and_one_of_no_calls_is_empty(notary: Running) -> None:
    unlimited, empty = (notary.front.ask(make_issue(max_calls=calls)).session_id for calls in (None, 0))
    assert notary.front.ask(ReadBudget(unlimited)) == Budget(found=False, debited=False, remaining=0)
    assert notary.front.ask(ReadBudget(empty)) == Budget(found=True, debited=False, remaining=0)


def test_an_event_gets_its_id_its_time_and_the_hash_of_the_one_before_from_the_notary(notary: Running) -> None:
    forged = own_event(event_id="evt_forged", timestamp="2001-01-01T00:00:00.000Z", prev_hash="sha256:forged")
    for _ in range(5):
        notary.front.ask(WriteEvent(forged))
    raw = stored(notary.path)
    events = [msgspec.json.decode(one, type=AuditEvent) for one in raw]
    assert {event.timestamp for event in events} == {iso(NOW)}
    assert len({event.event_id for event in events} - {"evt_forged"}) == 5
    assert events[0].prev_hash is None
    for before, after in pairwise(raw):
        assert msgspec.json.decode(after)["prev_hash"] == "sha256:" + hashlib.sha256(before).hexdigest()


def test_the_epoch_rises_by_one_beyond_what_was_seen_and_its_event_says_from_where(notary: Running) -> None:
    front = notary.front
    moves = [
        (moved.previous, moved.current) for above in (0, 1, 7) for moved in [front.ask(make_revoke(above, ", by hand"))]
    ]
    assert moves == [(0, 1), (1, 2), (2, 8)]
    event = notary.last_event()
    assert event["change"] == {"previous_epoch": 2, "current_epoch": 8}
    assert event["reason"] == "the epoch was raised from 2 to 8, by hand"
    assert front.ask(ReadEpoch()) == 8


def test_every_front_gets_a_new_epoch_before_the_answer_to_its_request(notary: Running) -> None:
    front, other = notary.front, notary.attach("another")
    front.ask(make_revoke())
    assert front.in_force[-1].epoch == 1
    other.ask(ReadEpoch())
    assert [told.epoch for told in other.in_force] == [0, 1]


def test_the_first_message_to_a_front_has_the_stored_epoch(notary: Running) -> None:
    notary.front.ask(make_revoke(above=4))
    front = notary.restart()
    front.ask(ReadEpoch())
    assert [told.epoch for told in front.in_force] == [5]


def test_raises_at_the_same_time_all_count(notary: Running) -> None:
    fronts = [notary.front, notary.attach("another")]
    asked = [(front, front.send(*[make_revoke()] * 10)) for front in fronts]
    moves = [front.answer(number) for front, numbers in asked for number in numbers]
    assert sorted((moved.previous, moved.current) for moved in moves) == [(n, n + 1) for n in range(20)]


@pytest.mark.parametrize("asked", [make_issue(max_calls=2), make_note(), make_revoke()])
def test_with_a_clock_that_is_wrong_nothing_is_recorded(notary: Running, asked: object) -> None:
    notary.clock.wrong = "the wall clock has stepped back"
    with pytest.raises(Told) as told:
        notary.front.ask(asked)
    assert (told.value.problem, told.value.cause) == ("clock", "the wall clock has stepped back")
    notary.clock.wrong = ""
    assert notary.front.ask(ReadEpoch()) == 0
    assert walk(notary.front).total_events == 0
    notary.front.ask(asked)


@pytest.mark.parametrize(
    ("ends_at", "lives"), [(int(NOW) + 40, 40), (int(NOW) + 300, 300), (int(NOW) + 9000, 300), (None, 300)]
)
def test_a_lease_ends_with_its_callers_token_or_before(notary: Running, ends_at: int | None, lives: int) -> None:
    assert notary.front.ask(make_issue(ends_at=ends_at)).expires_at == iso(int(NOW) + lives)


def test_a_token_that_has_ended_gives_no_lease(notary: Running) -> None:
    with pytest.raises(Told, match="the token of the caller has ended"):
        notary.front.ask(make_issue(ends_at=int(NOW)))
    assert notary.events() == []
