"""A notary that ends at each step of a unit in Redis and ledger: a call counts once for its standing approval or not at
all, and a revocation that was answered holds."""

from collections.abc import Callable

import pytest

from ipc.operations.calls import Closed, HeldByCap
from ipc.operations.standing import RevokeStanding
from tests.notary.backends.redis.conftest import StartNotary
from tests.notary.backends.redis.test_caps_at_each_step import AT_EACH_STEP, BEFORE, ends_at
from tests.notary.operations.test_standing import OPERATORS, add, calls, opening
from tests.notary.running import Running
from tests.notary.samples import call_event, changed, fresh_proof

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
Step = Callable[..., None]


@pytest.fixture
def notary(start: StartNotary) -> Running:
    """One notary with operators."""
    return start(operators=OPERATORS)


@AT_EACH_STEP
def test_the_last_call_whose_notary_ends_counts_once_with_it_or_not_at_all(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    standing_id = add(notary, max_calls=1)
    asked = opening(standing_id)
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(asked)[0])
    assert calls(notary) == ([0] if step in BEFORE else [1])
    again = notary.attach(name)
    again.resend({number: changed(asked, proof=fresh_proof()) if step in BEFORE else asked})
    assert isinstance(again.answer(number), Closed)
    assert calls(notary) == [1]
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)


@AT_EACH_STEP
def test_a_revocation_whose_notary_ends_is_done_once_or_not_at_all(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    standing_id = add(notary, max_calls=2)
    notary.front.ask(opening(standing_id))
    asked = RevokeStanding(standing_id, call_event(event_type="StandingApprovalRevoked", decision="allow"))
    name, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(asked)[0])
    assert calls(notary) == ([1] if step in BEFORE else [])
    again = notary.attach(name)
    again.resend({number: asked})
    assert again.answer(number).calls == 1
    assert calls(notary) == []
    assert isinstance(notary.front.ask(opening(standing_id)), HeldByCap)
    assert [one["event_type"] for one in notary.events()].count("StandingApprovalRevoked") == 1
