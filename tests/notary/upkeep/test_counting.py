"""Counts of calls by hour: the notary makes them, and forgets them, by itself."""

from msgspec.structs import replace

from tests.notary.conftest import StartNotary
from tests.notary.samples import NOW, make_refuse
from tests.support.notary_thread import LIMITS
from tests.support.supervised import wait_until

COUNTED = "SELECT 1 FROM activity"


def test_counts_are_made_after_a_checkpoint_and_forgotten_after_400_days(start_notary: StartNotary) -> None:
    notary = start_notary(limits=replace(LIMITS, round_seconds=0.05))
    notary.front.ask(make_refuse())
    wait_until(lambda: notary.stored(COUNTED))
    notary.clock.time = NOW + 401 * 86_400
    notary.restart()
    wait_until(lambda: not notary.stored(COUNTED))
