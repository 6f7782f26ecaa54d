"""Caps of two fronts against a plain model of what calls may add up to."""

from hypothesis.stateful import run_state_machine_as_test

from tests.notary.capped_calls import play
from tests.notary.running import Running
from tests.support.properties import FEW


def test_sums_of_two_fronts_are_exact_and_never_above_a_cap(notary: Running) -> None:
    run_state_machine_as_test(play([(notary, notary.front), (notary, notary.attach("other"))]), settings=FEW)
