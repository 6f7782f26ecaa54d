"""A notary that ends within a unit that changes Redis and ledger: each kind of change is done once, or not at all.

tests/notary/backends/redis/test_order.py ends a notary at each step; here are the steps after which something is undone
or repeated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from ipc.operations.calls import CallKey, Closed, Open, Refuse, RepeatedCall
from ipc.operations.caps import ReadHeldCaps, SumCap
from ipc.operations.holds import GetHold, Hold
from ipc.operations.intents import ResolveIntent
from ipc.operations.leases import SignedLease, TooManySessions
from ipc.operations.standing import RevokeStanding
from ipc.settings import OperatorSettings
from tests.notary.backends import order
from tests.notary.backends.order import Step, ends_at
from tests.notary.capped_calls import POINTER, WINDOWS, approved_of, hold_of, opening_of, outcome_of, uses_of
from tests.notary.conftest import StartNotary
from tests.notary.lost import OVER
from tests.notary.operations.test_standing import OPERATORS, add, calls, opening
from tests.notary.running import Running
from tests.notary.samples import (
    DIGEST,
    call_event,
    changed,
    fresh_proof,
    make_approval,
    make_claim,
    make_denial,
    make_hold,
    make_issue,
    make_open,
    make_resolution,
    make_revocation,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("patient_backends"),
]
ACTION, PAYER, KEY = "text_digest", "uid:1000", CallKey("k")
UNDONE = (order.applied, order.recovered)
"""Steps after which the next notary finds nothing of the unit: it undoes it, or the one before has."""
AT_STEPS = pytest.mark.parametrize(
    "step", [*UNDONE, order.committed, order.answered], ids=lambda step: str(step.__name__)
)


@pytest.fixture
def notary(start: StartNotary) -> Running:
    """One notary with operators."""
    return start(operators=(*OPERATORS, OperatorSettings("alice")))


def spending(value: str, **given: Any) -> Open:
    return opening_of(ACTION, PAYER, uses_of(PAYER, value, is_spared=True), **given)


def total(notary: Running, _: Any = None) -> str:
    (one,) = notary.front.ask(SumCap(ACTION, POINTER, "principal", WINDOWS["principal"])).sums
    return str(one.total)


def repeated(notary: Running) -> RepeatedCall | None:
    """The outcome that a call under the key would be answered with; None if it would be made."""
    event = call_event(decision="deny", error_code="budget_exhausted")
    answer: RepeatedCall | None = notary.front.ask(Refuse(event, fresh_proof(), idempotency=KEY)).repeated
    return answer


def code_of_key(notary: Running, _: Any = None) -> str | None:
    answer = repeated(notary)
    return None if answer is None else answer.code


def has_key(notary: Running, asked: Open | Hold) -> bool:
    answer = repeated(notary)
    call_id = asked.intent_id if isinstance(asked, Open) else asked.approval.approval_id
    return answer is not None and answer.call_id == call_id


def capped(notary: Running, asked: Any) -> Any:
    """The same once 10 is spent."""
    notary.front.ask(spending("10"))
    return asked


def waiting(notary: Running) -> Hold:
    return hold_of(ACTION, PAYER, uses_of(PAYER, "20", is_spared=True), notary.clock.time)


def claimed(notary: Running, held: Hold) -> Hold:
    """A hold that alice has claimed."""
    for asked in (held, make_claim(held.approval, notary.front.front_id)):
        notary.front.ask(asked)
    return held


def keyed_hold() -> Hold:
    return make_hold(make_approval(request_hash=DIGEST), idempotency=KEY)


def claim_of_one(notary: Running) -> Any:
    held = make_hold()
    notary.front.ask(held)
    return make_claim(held.approval, notary.front.front_id)


def unresolved(notary: Running, outcome: str) -> ResolveIntent:
    """The resolution of a call under the key of which no process reports any more."""
    first = make_open(idempotency=KEY)
    notary.front.begin(first)
    notary.restart()
    notary.clock.time += OVER
    return make_resolution(first.intent_id, outcome)


def revocation(notary: Running) -> RevokeStanding:
    standing_id = add(notary, max_calls=2)
    notary.front.ask(opening(standing_id))
    return RevokeStanding(standing_id, call_event(event_type="StandingApprovalRevoked", decision="allow"))


def reserved(notary: Running, asked: Hold) -> tuple[bool, str, int]:
    approval_id = asked.approval.approval_id
    is_held = notary.front.ask(GetHold(approval_id)) is not None
    return is_held, total(notary), len(notary.front.ask(ReadHeldCaps(approval_id)))


def of_approval(notary: Running, asked: Any) -> tuple[str, str | None, bool]:
    hold = notary.front.ask(GetHold(asked.approval_id))
    return hold.state, hold.holder, '"request"' in hold.body


def of_standing(notary: Running, _: Any) -> tuple[list[int], int]:
    return calls(notary), [one["event_type"] for one in notary.events()].count("StandingApprovalRevoked")


class Unit(NamedTuple):
    """A change: what is asked, after what it needs; and what is seen of it without and with it."""

    begin: Callable[[Running], Any]
    look: Callable[[Running, Any], Any]
    before: Any
    after: Any


UNITS: dict[str, Unit] = {
    "the amount of a call": Unit(lambda notary: capped(notary, spending("20")), total, "10", "30"),
    "the amount of a hold": Unit(
        lambda notary: capped(notary, waiting(notary)), reserved, (False, "10", 0), (True, "30", 2)
    ),
    "the amount of a denied hold": Unit(
        lambda notary: make_denial(claimed(notary, capped(notary, waiting(notary))).approval), total, "30", "10"
    ),
    "the amount of an approved call": Unit(
        lambda notary: approved_of(claimed(notary, capped(notary, waiting(notary)))), total, "30", "30"
    ),
    "the key of a call": Unit(lambda _: make_open(idempotency=KEY), has_key, False, True),
    "the key of a hold": Unit(lambda _: keyed_hold(), has_key, False, True),
    "the key of a denied hold": Unit(
        lambda notary: make_denial(claimed(notary, keyed_hold()).approval), code_of_key, None, "policy_denied"
    ),
    "what an operator says has happened": Unit(
        lambda notary: unresolved(notary, "happened"), code_of_key, "outcome_unknown", "already_executed"
    ),
    "what an operator says has not happened": Unit(
        lambda notary: unresolved(notary, "did_not_happen"), code_of_key, "outcome_unknown", None
    ),
    "the last call of a standing approval": Unit(
        lambda notary: opening(add(notary, max_calls=1)), of_standing, ([0], 0), ([1], 0)
    ),
    "the end of a standing approval": Unit(revocation, of_standing, ([1], 0), ([], 1)),
    "a claim": Unit(claim_of_one, of_approval, ("pending", None, True), ("claimed", "front-1", True)),
}


@AT_STEPS
@pytest.mark.parametrize("name", UNITS)
def test_a_change_whose_notary_ends_is_done_once_with_its_unit_or_not_at_all(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step, name: str
) -> None:
    unit = UNITS[name]
    asked = unit.begin(notary)
    front_id, number = ends_at(notary, monkeypatch, step, lambda: notary.front.send(asked)[0])
    assert unit.look(notary, asked) == (unit.before if step in UNDONE else unit.after)
    # The front asks again under the same number; the proof of a unit that was undone stays used.
    is_proven = step in UNDONE and getattr(asked, "proof", None) is not None
    again = notary.asked_again(front_id, {number: changed(asked, proof=fresh_proof()) if is_proven else asked})
    assert again.heard(number).problem is None
    assert unit.look(notary, asked) == unit.after


@AT_STEPS
@pytest.mark.parametrize(
    ("outcome", "counts", "code"), [("happened", "30", "already_executed"), ("did_not_happen", "10", None)]
)
def test_an_end_that_a_worker_tells_counts_once_whenever_its_notary_ends(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step, outcome: str, counts: str, code: str | None
) -> None:
    call, result = capped(notary, spending("20", idempotency=KEY)), outcome_of(outcome)
    number = notary.front.begin(call)
    worker = notary.workers.of(call.intent_id)
    word = worker.word()

    def report() -> int:
        worker.run(word, result)
        return number

    front_id, _ = ends_at(notary, monkeypatch, step, report)
    told = ("30", "call_in_progress") if step in UNDONE else (counts, code)
    assert (total(notary), code_of_key(notary)) == told
    again = notary.asked_again(front_id, {number: call})
    if step in UNDONE:
        worker.run(worker.word(), result)
    assert isinstance(again.answer(number), Closed)
    assert (total(notary), code_of_key(notary)) == (counts, code)
    assert worker.runs == [call.intent_id]


@pytest.mark.parametrize("step", UNDONE, ids=lambda step: str(step.__name__))
def test_a_session_whose_end_is_undone_counts_among_those_of_its_principal_again(
    notary: Running, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    session_id = notary.front.ask(make_issue(max_sessions=1)).session_id
    revoked = make_revocation(session_id)
    ends_at(notary, monkeypatch, step, lambda: notary.front.send(revoked)[0])
    assert isinstance(notary.front.ask(make_issue(max_sessions=1)), TooManySessions)
    assert notary.front.ask(revoked) is not None
    assert isinstance(notary.front.ask(make_issue(max_sessions=1)), SignedLease)
