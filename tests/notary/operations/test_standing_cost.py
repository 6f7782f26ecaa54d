"""Standing approvals: the work and the log lines of each call that is held, and how many of them stand."""

import msgspec
import pytest

from ipc.keys.signed_approvals import SignedText
from ipc.operations.holds import HoldInForce
from ipc.operations.standing import FindStanding, Lifted, ListStanding, RevokeStanding, StandingInForce
from ipc.settings import OperatorSettings
from notary.signing.operators import check_signature
from tests.notary.conftest import StartNotary
from tests.notary.operations.test_standing import ANN, MALLORY, OPERATORS, add, adding, calls, holding, rewrite
from tests.notary.running import Running
from tests.notary.samples import NOW, call_event, make_revoke
from tests.support.gateway import wait_for
from tests.support.logs import capture_logs
from tests.support.signed_approvals import tampered
from tests.support.standing_approvals import signed_standing

FULL = "a standing approval serves no call"
CALLS = 3


@pytest.fixture
def notary(start_notary: StartNotary) -> Running:
    """A notary with operators."""
    return start_notary(operators=OPERATORS)


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of signatures as they are checked."""
    keys: list[str] = []

    def noted(signed: SignedText) -> None:
        keys.append(signed.jkt)
        check_signature(signed)

    monkeypatch.setattr("notary.signing.standing_texts.check_signature", noted)
    return keys


def test_a_signature_is_checked_once_for_all_calls_that_it_covers(notary: Running, checked: list[str]) -> None:
    standing_id = add(notary)
    for _ in range(CALLS):
        assert notary.front.ask(holding()) == Lifted(standing_id)
    assert checked == [ANN.jkt]


def test_a_text_without_a_good_signature_is_checked_and_told_of_once(notary: Running, checked: list[str]) -> None:
    good = signed_standing(ANN, now=NOW, max_calls=1)
    row = notary.front.ask(adding(good)).row
    rewrite(notary, msgspec.structs.replace(row, signature=tampered(good, max_calls=1000)))
    checked.clear()
    with capture_logs() as logs:
        for _ in range(CALLS):
            assert isinstance(notary.front.ask(holding()), HoldInForce)
    assert checked == [ANN.jkt]
    assert [(one["standing_id"], one["cause"]) for one in logs if one["event"] == FULL] == [
        (row.standing_id, "its key has not signed it")
    ]


def test_a_checked_signature_serves_no_call_once_the_key_is_another(notary: Running) -> None:
    add(notary)
    assert isinstance(notary.front.ask(holding()), Lifted)
    ann = OperatorSettings("ann", dpop_jkt="another key", api_key_sha256="a" * 64)
    notary.settings = msgspec.structs.replace(notary.settings, operators=(ann, *OPERATORS[1:]))
    notary.restart()
    assert notary.front.ask(FindStanding("text_digest", "uid:1000", None, "{}")) is None


@pytest.fixture
def crowded(start_notary: StartNotary, monkeypatch: pytest.MonkeyPatch) -> Running:
    """A crowded with little room."""
    for name, most in (("MAX_STANDING", 3), ("MAX_OF_OPERATOR", 2), ("MAX_REVOKED", 2)):
        monkeypatch.setattr(f"notary.operations.standing.{name}", most)
    return start_notary(operators=OPERATORS)


def added(crowded: Running, operator: str = "ann") -> bool:
    """True if one more by this operator comes into force."""
    key = ANN if operator == "ann" else MALLORY
    text = signed_standing(key, now=crowded.clock.time, operator=operator, until=int(NOW) + 86_400)
    return isinstance(crowded.front.ask(adding(text, operator, key)), StandingInForce)


def revoke_all_of_them(crowded: Running) -> None:
    event = call_event(event_type="StandingApprovalRevoked", decision="allow")
    for one in crowded.front.ask(ListStanding()):
        crowded.front.ask(RevokeStanding(one.row.standing_id, event))


def test_one_operator_can_not_take_all_the_room(crowded: Running) -> None:
    assert [added(crowded) for _ in range(3)] == [True, True, False]
    assert [added(crowded, "mallory") for _ in range(2)] == [True, False]
    assert calls(crowded) == [0, 0, 0]


def test_revoked_ones_take_no_room(crowded: Running) -> None:
    assert [added(crowded), added(crowded, "mallory"), added(crowded, "mallory")] == [True, True, True]
    revoke_all_of_them(crowded)
    assert [added(crowded), added(crowded), added(crowded, "mallory")] == [True, True, False]


def test_those_that_a_revocation_of_everything_ended_take_no_room(crowded: Running) -> None:
    assert added(crowded, "mallory")
    assert added(crowded, "mallory")
    crowded.front.ask(make_revoke())
    assert [added(crowded), added(crowded)] == [True, True]


def test_a_revoked_one_is_known_for_an_hour_and_an_operator_has_few_of_them(crowded: Running) -> None:
    assert [added(crowded), added(crowded)] == [True, True]
    revoke_all_of_them(crowded)
    assert not added(crowded)
    crowded.clock.time = NOW + 3599
    assert not added(crowded)
    crowded.clock.time = NOW + 3600
    wait_for(lambda: crowded.stored("SELECT 1 FROM standing_approvals") == [], "the end of revoked standing approvals")
    assert crowded.last_event()["event_type"] == "StandingApprovalRevoked"
    assert added(crowded)
