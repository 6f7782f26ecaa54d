"""The conclusions from a witness's answer about the witness and the log."""

import pytest

from frontend.witnesses.reply import INCONSISTENT, INVALID, REFUSED, UNREACHED, Reply, judged
from ipc.operations.witnesses import ToCosign

ASKED = ToCosign(old_size=5, size=9, proof=(), note="")


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(problem="no answer in time"), UNREACHED),
        (Reply(200, problem="its answer is no text"), INVALID),
        (Reply(400), REFUSED), (Reply(403), REFUSED), (Reply(404), REFUSED), (Reply(500), REFUSED),
        (Reply(302), REFUSED), (Reply(100), REFUSED),
        (Reply(422), INCONSISTENT),
        (Reply(409), INVALID),
        (Reply(409, told=10), INCONSISTENT),  # it has seen more than there is
        (Reply(409, told=5), INCONSISTENT),  # and nothing else than what was said: another tree
    ],
)  # fmt: skip
def test_what_stands_in_the_way_has_a_class(reply: Reply, outcome: str) -> None:
    verdict = judged(reply, ASKED)
    assert verdict is not None
    assert (verdict.outcome, bool(verdict.problem)) == (outcome, True)


@pytest.mark.parametrize("reply", [Reply(200, "lines"), Reply(409, told=0), Reply(409, told=4), Reply(409, told=9)])
def test_lines_are_to_be_checked_and_a_size_that_the_log_has_is_to_be_proven(reply: Reply) -> None:
    assert judged(reply, ASKED) is None
