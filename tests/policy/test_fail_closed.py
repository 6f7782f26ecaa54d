"""A mistake in the default policy never lets through what the policy denies: it is refused, told, or denied."""

import json
import re
from typing import Any

import msgspec
import pytest

from frontend.errors import GateError
from frontend.policy.doubts import doubts_of
from frontend.policy.question import parse_decision
from tests.policy.test_default_policy import DATA, OTHERWISE_ALLOWED
from tests.support.policy import DEFAULT_POLICY
from tests.support.policy import question as question_of
from workers.rego.evaluator import CompiledPolicy, EvaluationError, PolicyError
from workers.rego.inputs import input_problems

SOURCE = DEFAULT_POLICY.read_text()
TEXT = json.dumps(DATA)
REASONS = re.findall(r'^reason\("(\w+)"\)', SOURCE, re.MULTILINE)
WORDS = [match.span() for match in re.finditer(r"#[^\n]*|[A-Za-z_]\w*", SOURCE) if not match[0].startswith("#")]

ALLOWED, HELD, DENIED = range(3)

QUESTIONS: dict[str, dict[str, Any]] = {
    "trust": {"action_trust_verdict": "mismatch"},
    "trust, too": {"action_trust_verdict": "not_registered"},
    "denied_action": {"action_id": "export"},
    "acl": {"action_id": "unknown"},
    "acl of one that stands alone": {"principal": "loner"},
    "acl of a stranger": {"principal": "stranger", "action_id": "pay", "requested_sinks": ()},
    "scope": {"scopes": ()},
    "sinks": {"requested_sinks": ("http_read", "fs_write")},
    "sinks of one that stands alone": {"principal": "loner", "action_id": "pay"},
    "hold_high_risk": {"action_risk_level": "high"},
    "hold_unresolved_domain": {"unresolved_domains": ("a.example",)},
    "hold_unresolved_path": {"unresolved_paths": ("a",)},
    "spared": {"principal": "loner", "action_id": "pay", "requested_sinks": (), "action_risk_level": "high"},
    "nothing": {},
}


def asked(name: str) -> dict[str, Any]:
    """The input document of one of QUESTIONS, as it comes over the channel."""
    changes: dict[str, Any] = OTHERWISE_ALLOWED | QUESTIONS[name]
    document: dict[str, Any] = json.loads(msgspec.json.encode(question_of(**changes).as_input()))
    return document


def outcomes(policy: CompiledPolicy) -> dict[str, int]:
    """The result of each question; without a decision the call is denied (503)."""
    by_question = {}
    for name in QUESTIONS:
        try:
            decision = parse_decision(policy.evaluate(asked(name)))
        except (EvaluationError, GateError):
            by_question[name] = DENIED
        else:
            by_question[name] = DENIED if not decision.allow else HELD if decision.requires_approval else ALLOWED
    return by_question


def compiled(source: str) -> CompiledPolicy:
    """Raises PolicyError as a load would."""
    modules = {"gateway.rego": source}
    policy = CompiledPolicy(modules, TEXT)
    problems = input_problems(modules) or policy.input_problems(modules)
    if problems:
        raise PolicyError(problems)
    return policy


@pytest.fixture(scope="module")
def right() -> dict[str, int]:
    by_question = outcomes(compiled(SOURCE))
    assert list(by_question.values()) == [DENIED] * 9 + [HELD] * 4 + [ALLOWED]
    return by_question


@pytest.mark.parametrize("name", REASONS)
@pytest.mark.parametrize("how", ["removed", "misspelt", "without a value"])
def test_a_denial_whose_reason_is_not_there_stays_a_denial(name: str, how: str, right: dict[str, int]) -> None:
    head = f'reason("{name}") :='
    definition = re.search(rf"^{re.escape(head)}.*?(?=^\S(?<!}}))", SOURCE + "\n#", re.MULTILINE | re.DOTALL)
    assert definition is not None
    wrong = {
        "removed": SOURCE.replace(definition[0].rstrip(), ""),
        "misspelt": SOURCE.replace(head, f'reason("{name}x") :='),
        "without a value": SOURCE.replace(head, f'reason("{name}") := data.nothing if true\n\nunused("{name}") :='),
    }[how]
    assert wrong != SOURCE
    policy = compiled(wrong)
    assert outcomes(policy) == right
    said = parse_decision(policy.evaluate(asked(name)))
    assert (said.rule, said.deny_reason) == (name, f"denied by rule {name}")
    told = [one.sentence for one in doubts_of({"gateway.rego": wrong}, TEXT)]
    assert any(f'"{name}"' in one or "data.nothing" in one for one in told)


@pytest.mark.parametrize("name", REASONS)
def test_a_denial_whose_name_is_misspelt_stays_a_denial_and_is_told(name: str, right: dict[str, int]) -> None:
    wrong = SOURCE.replace(f':= "{name}" if', f':= "{name}x" if')
    assert wrong != SOURCE
    assert outcomes(compiled(wrong)) == right
    said = [one.sentence for one in doubts_of({"gateway.rego": wrong}, TEXT) if one.is_mistake]
    assert len(said) == 2
    assert all(re.match(r"gateway\.rego:\d+: ", one) for one in said)


@pytest.mark.large
def test_no_word_can_be_misspelt_so_that_more_is_allowed_and_nothing_is_said(right: dict[str, int]) -> None:
    assert len(WORDS) > 300
    silent = []
    for start, end in WORDS:
        wrong = SOURCE[:end] + "x" + SOURCE[end:]
        if doubts_of({"gateway.rego": wrong}, TEXT):
            continue
        try:
            by_question = outcomes(compiled(wrong))
        except PolicyError:
            continue
        wider = [name for name, outcome in by_question.items() if outcome < right[name]]
        if wider:
            line = SOURCE.count("\n", 0, start) + 1
            silent.append(f"{SOURCE[start:end]} in line {line}: {wider}")
    assert silent == []
