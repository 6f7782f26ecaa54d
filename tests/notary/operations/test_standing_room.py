"""The room for standing approvals: how many stand, of one operator and in all, and how long a revoked one is known."""

import pytest

from ipc.operations.standing import ListStanding, RevokeStanding, StandingInForce
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_standing import ANN, MALLORY, OPERATORS, adding, calls
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, make_revoke
from tests.support.gateway import wait_for
from tests.support.standing_approvals import signed_standing


@pytest.fixture
def notary(start_notary: StartNotary, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A notary with little room."""
    for name, most in (("MAX_STANDING", 3), ("MAX_OF_OPERATOR", 2), ("MAX_REVOKED", 2)):
        monkeypatch.setattr(f"notary.operations.standing.{name}", most)
    return start_notary(operators=OPERATORS)


def added(notary: Running, operator: str = "ann") -> bool:
    """True if one more by this operator comes into force."""
    key = ANN if operator == "ann" else MALLORY
    text = signed_standing(key, now=notary.clock.time, operator=operator, until=int(NOW) + 86_400)
    return isinstance(notary.front.ask(adding(text, operator, key)), StandingInForce)


def revoke_all_of_them(notary: Running) -> None:
    event = call_event(event_type="StandingApprovalRevoked", decision="allow")
    for one in notary.front.ask(ListStanding()):
        notary.front.ask(RevokeStanding(one.row.standing_id, event))


def test_one_operator_can_not_take_all_the_room(notary: Running) -> None:
    assert [added(notary) for _ in range(3)] == [True, True, False]
    assert [added(notary, "mallory") for _ in range(2)] == [True, False]
    assert calls(notary) == [0, 0, 0]


def test_revoked_ones_take_no_room(notary: Running) -> None:
    assert [added(notary), added(notary, "mallory"), added(notary, "mallory")] == [True, True, True]
    revoke_all_of_them(notary)
    assert [added(notary), added(notary), added(notary, "mallory")] == [True, True, False]


def test_those_that_a_revocation_of_everything_ended_take_no_room(notary: Running) -> None:
    assert added(notary, "mallory")
    assert added(notary, "mallory")
    notary.front.ask(make_revoke())
    assert [added(notary), added(notary)] == [True, True]


def test_a_revoked_one_is_known_for_an_hour_and_an_operator_has_few_of_them(notary: Running) -> None:
    assert [added(notary), added(notary)] == [True, True]
    revoke_all_of_them(notary)
    assert not added(notary)
    notary.clock.time = NOW + 3599
    assert not added(notary)
    notary.clock.time = NOW + 3600
    wait_for(lambda: notary.stored("SELECT 1 FROM standing_approvals") == [], "the end of revoked standing approvals")
    assert notary.last_event()["event_type"] == "StandingApprovalRevoked"
    assert added(notary)
