"""The policy examiner over its real channel: values, rules that fail or hang, and a policy that costs its process."""

import json
from collections.abc import Iterator

import psutil
import pytest

from frontend.policy.engine import PolicyRefused
from frontend.policy.tools.examiner import ExaminerClient, ExaminerLost
from frontend.policy.tools.testing import ORDINARY
from ipc.messages.checking import Evaluated
from tests.support.examining import RunningExaminer
from tests.support.policy import HEADER, document

RULES = (
    f"decision := {document()}\n"
    """
principal := input.principal

undefined_one if input.principal == "nobody"

failing := 1 / count(input.targets)

printing if {
	print("said", input.principal)
	true
}

large := concat("", ["0123456789" | some _ in numbers.range(1, 20000)])

endless if count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y + 0.5]) == 1
"""
)
NAMES = ("principal", "undefined_one", "failing", "printing", "large", "endless")


@pytest.fixture(scope="module")
def running() -> Iterator[RunningExaminer]:
    started = RunningExaminer()
    started.examiner.compile({"p.rego": HEADER + RULES}, "{}", [f"gateway/{name}" for name in NAMES])
    yield started
    started.close()


def value(examiner: ExaminerClient, name: str) -> Evaluated:
    return examiner.value(f"gateway/{name}", ORDINARY.as_input())


def test_each_rule_has_a_value_or_none(running: RunningExaminer) -> None:
    examiner = running.examiner
    assert (value(examiner, "principal").outcome, value(examiner, "principal").text) == ("value", '"agent"')
    assert value(examiner, "undefined_one").outcome == "undefined"
    assert json.loads(value(examiner, "decision").text)["allow"] is True


@pytest.mark.parametrize(("name", "outcome", "text", "printed"), [
    ("failing", "error", "divide by zero", ""),
    ("printing", "value", "true", "said agent\n"),
    ("large", "error", "the value has 200002 characters", ""),
])  # fmt: skip
def test_a_rule_has_an_outcome_a_text_and_its_printed_lines(
    running: RunningExaminer, name: str, outcome: str, text: str, printed: str
) -> None:
    evaluated = value(running.examiner, name)
    assert (evaluated.outcome, evaluated.printed) == (outcome, printed)
    assert text in evaluated.text


def test_a_rule_without_end_is_cut_after_a_second_and_the_next_is_evaluated(running: RunningExaminer) -> None:
    evaluated = value(running.examiner, "endless")
    assert (evaluated.outcome, evaluated.text) == ("timeout", "no value within 1 s")
    assert evaluated.seconds > 0.9
    assert value(running.examiner, "principal").outcome == "value"
    assert psutil.Process(running.process.pid).children() == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("decision := {", "p.rego:"),
        ("decision := x if {\n\tnot mispelt\n\tx := 1\n}", "never gets a value"),
        ("decision := 1", 'asked about "probe:nobody calls probe_action" it answers wrongly'),
        ("other := 1", "data.gateway.decision is undefined for this input"),
    ],
)
def test_a_policy_that_a_gateway_would_refuse_is_refused(running: RunningExaminer, body: str, said: str) -> None:
    with pytest.raises(PolicyRefused) as refused:
        running.examiner.compile({"p.rego": HEADER + body + "\n"}, "{}", ())
    assert said in refused.value.problems[0]
    running.examiner.compile({"p.rego": HEADER + RULES}, "{}", [f"gateway/{name}" for name in NAMES])


def test_a_policy_that_costs_the_process_is_a_sentence() -> None:
    lost = RunningExaminer()
    try:
        with pytest.raises(PolicyRefused, match="the evaluator died while it compiled this policy"):
            lost.examiner.compile({"p.rego": HEADER + "decision := " + "[" * 100_000 + "]" * 100_000}, "{}", ())
        with pytest.raises(ExaminerLost):
            value(lost.examiner, "decision")
    finally:
        lost.close()
