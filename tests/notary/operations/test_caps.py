"""Caps: judged and reserved with the operation that opens or holds a call, given back when it did not happen."""

from typing import Any

import msgspec
import pytest
from hypothesis.stateful import run_state_machine_as_test

from ipc.caps import MAX_CAPS, CapReading, CapSum, CapUse
from ipc.operations.calls import Closed, HeldByCap, Open, Refusal, Withdraw
from ipc.operations.caps import CapSums, ReadCaps, ReadHeldCaps, SumCap
from ipc.operations.holds import Hold, HoldInForce
from notary.operations import capping
from notary.operations.capping import OVER
from notary.store import cap_rows
from notary.store.caps import CapCounter
from tests.notary.capped_calls import play
from tests.notary.running import Running
from tests.notary.samples import (
    NOW,
    by_alice,
    call_event,
    make_approval,
    make_claim,
    make_denial,
    make_expiry,
    make_hold,
    make_open,
)
from tests.support.asking import Told
from tests.support.properties import FEW

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
    assert isinstance(front.ask(asked(approver=by_alice(holding.approval), proof=None)), Closed)
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


def test_sums_of_two_fronts_are_exact_and_never_above_a_cap(notary: Running) -> None:
    run_state_machine_as_test(play([(notary, notary.front), (notary, notary.attach("other"))]), settings=FEW)
