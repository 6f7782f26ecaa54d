"""Thresholds and caps of data.json in `gateway policy explain` and `test`."""

import json
from pathlib import Path
from typing import Any

import pytest

from frontend.policy.tools import command
from tests.frontend.policy.tools.test_command import HEADER, Run, examiner, policy, question, run

__all__ = ["examiner", "policy", "run"]
THRESHOLDS = [
    {"pointer": "/amount", "hold_above": 100}, {"pointer": "/amount", "deny_above": 1000},
    {"pointer": "/currency", "deny_unless_in": ["EUR"]},
]  # fmt: skip
CAP = {"pointer": "/amount", "per": "all", "window_seconds": 60, "deny_above": 5}


def put(policy: Path, **more: Any) -> None:
    file = policy / "data.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | more))


@pytest.mark.parametrize(
    ("amount", "first"),
    [
        (100, "ALLOWED by rule allow"), (101, "HELD by rule threshold: an operator decides"),
        (1001, "DENIED by rule threshold: denied by a threshold of read: /amount is above 1000, or is no number"),
    ],
)  # fmt: skip
def test_an_explanation_shows_each_threshold_with_its_value_and_what_the_rules_alone_would_do(
    policy: Path, run: Run, amount: int, first: str
) -> None:
    put(policy, thresholds={"read": THRESHOLDS})
    asked = question(policy, request={"/amount": amount, "/currency": "EUR"})
    code, out = run(command.explain_question, input=asked)
    assert (code, out.splitlines()[0]) == (0, first)
    assert ("the rules alone would allow it, by rule allow" in out) is (amount > 100)
    told = out[out.index("thresholds of data.json:") :]
    outcome = "is kept" if amount <= 100 else "holds"
    assert f"  {outcome:<8}  hold_above: /amount is above 100, or is no number\n" in told
    assert f'input.request["/amount"] = {amount}\n' in told
    assert '  is kept   deny_unless_in: /currency is not among ["EUR"]\n' in told


def test_the_decision_for_programs_is_the_one_after_thresholds(policy: Path, run: Run) -> None:
    put(policy, thresholds={"read": THRESHOLDS}, allowlist={"read": {"agent": True}}, caps={"read": [CAP]})
    _, out = run(command.explain_question, input=question(policy, request={"/amount": 2e3}), json=True)
    told = json.loads(out)
    assert (told["decision"]["rule"], told["decision"]["allow"], told["by_rules"]["allow"]) == (
        "threshold",
        False,
        True,
    )
    assert [one["outcome"] for one in told["thresholds"]] == ["hold", "deny", "deny"]
    assert (told["thresholds"][2]["value"], told["caps"]) == (None, ["/amount"])
    _, out = run(command.explain_question, input=question(policy, request={"/amount": 101, "/currency": "EUR"}))
    assert out.startswith("ALLOWED by rule allowlist\n"), "the allowlist lifts a threshold's hold"
    assert out.splitlines()[-1] == "caps of data.json, which the running gateway counts: /amount"


def test_a_value_that_a_cap_can_not_count_is_a_denial_of_an_explanation_too(policy: Path, run: Run) -> None:
    put(policy, caps={"read": [CAP]})
    _, out = run(command.explain_question, input=question(policy, request={"/amount": "5"}))
    assert out.startswith("DENIED by rule cap: /amount is no amount that its cap can count\n")


def test_a_run_of_tests_names_the_actions_whose_thresholds_and_caps_no_test_sees(policy: Path, run: Run) -> None:
    (policy / "gateway_test.rego").write_text(f"{HEADER}test_one if true\n")
    assert "no test sees" not in run(command.test)[1]
    put(policy, thresholds={"read": THRESHOLDS}, caps={"pay": [CAP]})
    code, out = run(command.test)
    assert (code, out.splitlines()[-1]) == (
        0, "no test sees the thresholds and caps of pay, read: gateway policy explain shows them."
    )  # fmt: skip
