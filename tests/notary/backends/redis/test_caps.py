"""Caps of gateways that share a Redis: exact, whichever counts."""

from collections import Counter

import pytest
from hypothesis.stateful import run_state_machine_as_test

from ipc.operations.calls import Closed, Open, Refusal
from ipc.operations.caps import SumCap
from ipc.operations.holds import Hold, HoldInForce
from tests.notary.backends.redis.conftest import StartNotary
from tests.notary.capped_calls import POINTER, WINDOWS, hold_of, opening_of, play, uses_of
from tests.notary.running import Running
from tests.support.properties import FEW

pytestmark = pytest.mark.usefixtures("patient_backends")
ACTION, PAYER = "text_digest", "uid:1000"


def spending(value: str, subject: str = PAYER) -> Open:
    return opening_of(ACTION, subject, uses_of(subject, value, is_spared=True))


def used(notary: Running, per: str = "all") -> dict[str, str]:
    """Subject -> total and unknown part."""
    sums = notary.front.ask(SumCap(ACTION, POINTER, per, WINDOWS[per])).sums
    return {one.subject: f"{one.total} {one.unknown}" for one in sums}


def waiting(value: str, notary: Running) -> Hold:
    return hold_of(ACTION, PAYER, uses_of(PAYER, value, is_spared=True), notary.clock.time)


def test_sums_of_two_gateways_are_exact_and_never_above_a_cap(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    run_state_machine_as_test(play([(one, one.front), (other, other.front)]), settings=FEW)


def test_calls_at_two_fronts_of_each_of_two_gateways_never_go_above_a_cap(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    fronts = [one.front, one.attach("more"), other.front, other.attach("others")]
    payers = ["a", "b", "c"]  # each may pay 50, all of them 100
    asked = [(front, spending("7", payer)) for _ in range(3) for payer in payers for front in fronts]
    numbers = [(front, front.send(opening)[0], opening) for front, opening in asked]
    ends = [(front.answer(number), opening) for front, number, opening in numbers]
    opened = Counter(opening.event.principal for end, opening in ends if isinstance(end, Closed))
    assert {type(end) for end, _ in ends} == {Closed, Refusal}
    assert opened.total() == 100 // 7, "as many as the cap of all allows, and no more"
    assert max(opened.values()) <= 50 // 7
    assert used(one) == used(other) == {"": "98 0"}
    assert used(one, "principal") == {str(payer): f"{7 * count} 0" for payer, count in opened.items()}


def test_holds_and_calls_of_two_gateways_share_a_cap(start: StartNotary) -> None:
    one, other = start("one"), start("other")
    numbers = [(running, running.front.send(asked)[0])
               for running in (one, other) for asked in (waiting("20", one), spending("20"))]  # fmt: skip
    ends = [running.front.answer(number) for running, number in numbers]
    assert Counter(type(end) in (Closed, HoldInForce) for end in ends) == {True: 2, False: 2}
    assert used(one, "principal") == {PAYER: "40 0"}
