"""Caps: judged and reserved with the operation that opens or holds a call, given back when it did not happen."""

from typing import Any

import msgspec
import pytest

from contract.failures import MayHaveRun
from ipc.caps import MAX_CAPS, CapReading, CapSum, CapUse
from ipc.events import AuditEvent
from ipc.operations.calls import Approver, Closed, HeldByCap, Open, Refusal, Withdraw
from ipc.operations.caps import CapSums, ReadCaps, ReadHeldCaps, SumCap
from ipc.operations.holds import Hold, HoldInForce
from ipc.operations.intents import INTENT_OUTCOMES, ListUnresolved, ResolveIntent
from notary.operations import capping
from notary.operations.capping import OVER
from notary.store import cap_rows
from notary.store.caps import CapCounter
from tests.notary.lost import lost_call
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    call_event,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_open,
    make_result,
)
from tests.support.asking import Told

CAP = SumCap("text_digest", "/amount", "principal", 3600)


def use(value: str = "40", **given: Any) -> CapUse:
    fields: dict[str, Any] = {
        "pointer": "/amount", "per": "principal", "subject": "uid:1000", "window_seconds": 3600, "value": value,
        "deny_above": "100",
    }  # fmt: skip
    return CapUse(**fields | given)


def asked(*uses: CapUse, **given: Any) -> Open:
    return make_open(caps=uses or (use(),), **given)


def held(*uses: CapUse) -> Hold:
    caps = uses or (use(),)
    approval = make_approval()
    kept = msgspec.json.encode(caps).decode()
    return make_hold(msgspec.structs.replace(approval, body=f'{{"caps":{kept},{approval.body[1:]}'), caps=caps)


def used(notary: Running) -> tuple[CapSum, ...]:
    return tuple(notary.front.ask(CAP).sums)


def total(notary: Running) -> str:
    return "0" if not used(notary) else used(notary)[0].total


def test_calls_up_to_deny_above_run_and_the_next_is_denied_with_nothing_reserved(notary: Running) -> None:
    front = notary.front
    ends = [front.ask(asked()) for _ in range(3)]
    assert [type(end) for end in ends] == [Closed, Closed, Refusal]
    assert (ends[2].code, ends[2].deny_reason) == (
        "policy_denied",
        "the cap on /amount would be exceeded: at most 100 in 3600 s for principal",
    )
    event = notary.last_event()
    assert (event["decision"], event["policy_rule"], event["error_code"]) == ("deny", "cap", "policy_denied")
    assert event["caps"] == [{"pointer": "/amount", "per": "principal", "total": "80", "with_this": "120"}]
    assert isinstance(front.ask(asked(use("20"))), Closed), "a limit that is reached exactly is not exceeded"
    assert notary.last_event()["caps"][0]["with_this"] == "100"
    assert used(notary) == (CapSum("uid:1000", "100", "0"),)


def test_a_call_without_caps_leaves_no_row_and_no_member(notary: Running) -> None:
    notary.front.ask(make_open())
    assert "caps" not in notary.last_event()
    assert notary.stored("SELECT 1 FROM cap_amounts") == []


def test_a_call_above_hold_above_is_opened_by_nothing_and_uses_no_proof(notary: Running) -> None:
    front, before = notary.front, len(notary.stored("SELECT 1 FROM intents"))
    opening = asked(use("60", hold_above="50"))
    assert isinstance(front.ask(opening), HeldByCap)
    assert len(notary.stored("SELECT 1 FROM intents")) == before
    holding = msgspec.structs.replace(held(use("60", hold_above="50")), proof=opening.proof)
    assert isinstance(front.ask(holding), HoldInForce)
    assert notary.last_event()["caps"][0]["with_this"] == "60"
    assert total(notary) == "60"


def test_deny_above_comes_before_hold_above_and_denies_what_is_to_be_held(notary: Running) -> None:
    assert notary.front.ask(asked(use("101", hold_above="50"))).code == "policy_denied"
    assert notary.front.ask(held(use("101", hold_above="50"))).code == "policy_denied"
    assert used(notary) == ()


def test_all_caps_are_reserved_or_none(notary: Running) -> None:
    full = use(per="all", subject="", deny_above="30")
    assert notary.front.ask(asked(use(), full)).code == "policy_denied"
    assert used(notary) == ()


def test_a_hold_reserves_and_its_approval_does_not_reserve_again(notary: Running) -> None:
    front, holding = notary.front, held()
    front.ask(holding)
    approval_id = holding.approval.approval_id
    reading = CapReading(use(), "0", "40")
    assert front.ask(ReadHeldCaps(approval_id)) == (reading,)
    front.ask(make_claim(holding.approval))
    approver = Approver(approval_id, "alice", "jkt", "jti")
    assert isinstance(front.ask(asked(approver=approver, proof=None)), Closed)
    assert total(notary) == "40"
    assert front.ask(ReadHeldCaps(approval_id)) == ()


def test_the_same_call_that_is_held_already_reserves_once(notary: Running) -> None:
    holding = held()
    notary.front.ask(holding)
    again = held()
    approval = msgspec.structs.replace(again.approval, request_hash=holding.approval.request_hash)
    event = msgspec.structs.replace(again.event, request_hash=holding.approval.request_hash)
    assert notary.front.ask(msgspec.structs.replace(again, approval=approval, event=event)).is_repeated
    assert total(notary) == "40"


@pytest.mark.parametrize("end", ["denied", "expired"])
def test_a_hold_that_is_denied_or_expires_gives_back(notary: Running, end: str) -> None:
    front, holding = notary.front, held()
    front.ask(holding)
    if end == "denied":
        front.ask(make_claim(holding.approval))
        front.ask(make_denial(holding.approval))
    else:
        notary.clock.time = NOW + 301
        front.ask(make_expiry(holding.approval))
    assert used(notary) == ()
    assert notary.stored("SELECT 1 FROM cap_reserved") == []


def test_a_hold_with_other_caps_than_its_body_is_refused(notary: Running) -> None:
    holding = held()
    with pytest.raises(Told):
        notary.front.ask(msgspec.structs.replace(holding, caps=()))


@pytest.mark.parametrize(("may_have_run", "left"), [("no", "0"), ("yes", "40")])
def test_a_failed_call_gives_back_if_it_is_known_not_to_have_had_its_effect(
    notary: Running, may_have_run: MayHaveRun, left: str
) -> None:
    opening = asked()
    number = notary.front.begin(opening)
    assert total(notary) == "40"
    notary.front.finish(opening, number, make_result("provider_error", may_have_run=may_have_run))
    assert total(notary) == left


@pytest.mark.parametrize("outcome", ["timeout", "worker_lost"])
def test_a_call_whose_outcome_is_unknown_counts_and_is_listed(notary: Running, outcome: str) -> None:
    opening = asked()
    number = notary.front.begin(opening)
    if outcome == "worker_lost":
        worker = notary.workers.of(opening.intent_id)
        worker.word()
        notary.workers.end(worker)
        notary.front.answer(number)
    else:
        notary.front.finish(opening, number, make_result(outcome))
    assert used(notary) == (CapSum("uid:1000", "40", "40"),)


@pytest.mark.parametrize("outcome", INTENT_OUTCOMES)
def test_an_unresolved_call_counts_and_is_listed_until_an_operator_says_that_it_did_not_happen(
    notary: Running, outcome: str
) -> None:
    lost_call(notary, caps=(use(window_seconds=86_400),))
    notary.clock.time += 600
    cap = msgspec.structs.replace(CAP, window_seconds=86_400)
    assert notary.front.ask(cap) == CapSums((CapSum("uid:1000", "40", "40"),), None)
    (view,) = notary.front.ask(ListUnresolved(5))
    event = AuditEvent(event_type="IntentResolved", trace_id="trc_1", principal="operator:ops", decision="allow")
    notary.front.ask(ResolveIntent(view.intent_id, outcome, event))
    left = {"happened": (CapSum("uid:1000", "40", "0"),), "unknown": (CapSum("uid:1000", "40", "40"),)}
    assert notary.front.ask(cap).sums == left.get(outcome, ())


def test_subjects_are_listed_page_by_page_and_those_without_an_amount_left_out(
    notary: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capping, "LISTED_SUBJECTS", 2)
    for subject, value in (("c", "3"), ("a", "1"), ("b", "0"), ("d", "4")):
        notary.front.ask(asked(use(value, per="owner", subject=subject)))
    cap = msgspec.structs.replace(CAP, per="owner")
    assert notary.front.ask(cap) == CapSums((CapSum("a", "1", "0"),), "b")
    rest = CapSums((CapSum("c", "3", "0"), CapSum("d", "4", "0")), None)
    assert notary.front.ask(msgspec.structs.replace(cap, after="b")) == rest
    assert notary.front.ask(msgspec.structs.replace(cap, after="d")) == CapSums((), None)


def test_a_preview_reserves_nothing(notary: Running) -> None:
    judged = notary.front.ask(ReadCaps("text_digest", (use("60", hold_above="50"),)))
    assert (judged.readings[0].with_this, judged.is_held, judged.denial) == ("60", True, None)
    assert notary.front.ask(ReadCaps("text_digest", (use("101"),))).denial == OVER.format(
        "/amount", 100, 3600, "principal"
    )
    assert used(notary) == ()


def test_two_fronts_in_one_unit_stay_within_a_cap(notary: Running) -> None:
    other = notary.attach("other")
    asked_of = {front: front.send(*(asked(use("30")) for _ in range(4))) for front in (notary.front, other)}
    ends = [front.answer(number) for front, numbers in asked_of.items() for number in numbers]
    assert sum(isinstance(end, Closed) for end in ends) == 3
    assert total(notary) == "90"


def test_what_was_reserved_survives_the_notary(notary: Running) -> None:
    notary.front.ask(asked(use("90")))
    assert notary.restart().ask(asked()).code == "policy_denied"


def test_a_clock_that_was_set_back_lets_through_no_more(notary: Running) -> None:
    notary.clock.time = NOW + 7200
    notary.front.ask(asked(use("90")))
    for back in (60.0, 3600.0):
        notary.clock.time = NOW + 7200 - back
        assert notary.front.ask(asked()).code == "policy_denied"


def test_a_front_names_no_more_caps_than_an_action_may_have(notary: Running) -> None:
    with pytest.raises(Told):
        notary.front.ask(asked(*(use(window_seconds=seconds) for seconds in range(1, MAX_CAPS + 2))))
    assert notary.stored("SELECT 1 FROM cap_amounts") == []


def test_an_event_of_a_front_names_no_caps(notary: Running) -> None:
    with pytest.raises(Told):
        notary.front.ask(asked(event=call_event(caps=({"pointer": "/a"},))))


def test_a_call_that_is_withdrawn_before_a_worker_has_begun_it_gives_back(notary: Running) -> None:
    opening = asked()
    notary.front.begin(opening)
    notary.front.ask(Withdraw(opening.intent_id, "error", "overloaded"))
    assert used(notary) == ()


def test_caps_of_before_a_clock_was_set_right_count_from_then_on(notary: Running) -> None:
    far = NOW + 10**7
    with notary.stranger() as connection:
        counter = CapCounter("text_digest", "/amount", "principal", 3600, "uid:1000")
        caps = cap_rows.SqliteCaps(connection)
        caps.add(counter, int(far), 7)
        caps.mark(counter, int(far), 7)
        cap_rows.bring_back(connection, NOW)
        assert caps.amount(counter, NOW) == (7, 7)
        assert caps.amount(counter, NOW + 3600 + 600) == (0, 0)
