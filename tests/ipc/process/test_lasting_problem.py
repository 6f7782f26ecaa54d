"""When a problem that lasts is worth a line."""

import pytest

from ipc.process.lasting_problem import LastingProblem


@pytest.mark.parametrize("cause", ["it is gone", ""])
def test_a_problem_is_new_once_until_its_cause_changes_or_it_ends(cause: str) -> None:
    problem = LastingProblem()
    assert [problem.is_new(one) for one in (cause, cause, "another", "another", cause)] == [True, False] * 2 + [True]
    problem.end()
    assert problem.is_new(cause)
