"""The evaluator answers with a decision or with an error, and says where a policy is broken."""

import json
import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from tests.support.packages import ROOT
from tests.support.policy import HEADER, document
from workers.rego.evaluator import CompiledPolicy, EvaluationError, PolicyError


def compiled(body: str, data: str = "{}") -> CompiledPolicy:
    return CompiledPolicy({"gateway.rego": HEADER + body + "\n"}, data)


@pytest.mark.parametrize(
    ("modules", "problem"),
    [
        ({"gateway.rego": 'package gateway\n\n# é\ndecision := {"allow": true\n'}, "gateway.rego:4: this is unclosed"),
        ({"gateway.rego": "package gateway\n\ndecision := 1\n\nx := := 2\n"}, "gateway.rego:5: "),
        ({"a.rego": "package gateway\ndecision := 1\n", "b.rego": "package b\n\nx := ]\n"}, "b.rego:3: "),
        ({"a.rego": "package other\n"}, "no file holds `package gateway`"),
        ({"a.rego": ""}, "no file holds `package gateway`"),
        ({"a.rego": "package gateway\ndefault decision := 1\ndefault decision := 2\n"}, "Multiple default rules"),
        ({"a.rego": "package gateway\ndecision := 1\0\n"}, "a.rego: holds a NUL character"),
        ({"a.rego": 'package gateway\n\ndecision := "\\u00e9"\n'}, "a.rego:3: write the character itself instead of"),
    ],
)
def test_a_broken_policy_is_refused_with_the_place(modules: dict[str, str], problem: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        CompiledPolicy(modules, "{}")
    assert any(problem in line for line in refusal.value.problems), refusal.value.problems


def test_escapes_in_raw_strings_and_comments_are_left_alone() -> None:
    assert compiled('# "\\u00e9"\ndecision := `\\u00e9`').evaluate({}) == '"\\\\u00e9"'


@pytest.mark.parametrize("data", ["", "[]", "{", "1"])
def test_data_that_is_no_object_is_refused(data: str) -> None:
    with pytest.raises(PolicyError):
        compiled("decision := 1", data)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("decision := 1 if input.missing", "data.gateway.decision is undefined"),
        ("decision := 1 if input.a\n\ndecision := 2 if input.a == 1", "eval_conflict_error"),
        ('decision := input.a + "x"', "eval_type_error: Not a number"),
        ("decision := 1 / (input.a - 1)", "divide by zero"),
        ("decision if not to_number(input.word) == 1", "error"),
        ('decision := json.unmarshal("{")', "error"),
    ],
)
def test_an_engine_that_fails_is_an_error_and_never_a_value(body: str, cause: str) -> None:
    with pytest.raises(EvaluationError, match=cause):
        compiled(body).evaluate({"a": 1, "word": "x"})


def test_a_reference_that_is_undefined_makes_no_document_of_the_rest() -> None:
    answer = compiled('decision := {"allow": true, "rule": input.missing}')
    with pytest.raises((EvaluationError, ValueError)):
        json.loads(answer.evaluate({}))


def growth_by_questions() -> int:
    """The bytes by which this process grows with five thousand questions."""
    policy = compiled(f"decision := {document(rule='input.name')}", json.dumps({"acl": {"a": ["b"] * 100}}))
    question = {"name": "x" * 2000, "list": ["y"] * 50}
    for _ in range(500):
        policy.evaluate(question)
    before: int = psutil.Process().memory_info().rss
    for _ in range(5000):
        policy.evaluate(question)
    return int(psutil.Process().memory_info().rss) - before


def growth_by_policies() -> int:
    """The bytes by which this process grows with forty policies."""
    data = json.dumps({"acl": {f"p{n}": ["b"] * 20 for n in range(50)}})
    for _ in range(5):
        compiled("decision := 1", data)
    before: int = psutil.Process().memory_info().rss
    for _ in range(40):
        compiled("decision := 1", data)
    return int(psutil.Process().memory_info().rss) - before


def in_a_process_of_its_own(growth: Callable[[], int]) -> int:
    """Its growth without the memory of earlier tests."""
    name = growth.__name__
    code = f"from tests.workers.rego.test_evaluator import {name}; print({name}())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    return int(done.stdout)


@pytest.mark.large
def test_asking_many_questions_does_not_grow_the_process() -> None:
    assert in_a_process_of_its_own(growth_by_questions) < 4 << 20


def test_loading_many_policies_does_not_grow_the_process() -> None:
    assert in_a_process_of_its_own(growth_by_policies) < 16 << 20


@pytest.mark.parametrize("fields", [3, 6, 40, 400])
def test_a_small_policy_with_many_strings_and_a_number_can_be_run(fields: int) -> None:
    strings = ", ".join(f'"k{number}": "v{number}"' for number in range(fields))
    policy = compiled(f"decision := {{{strings}}} if input.a > 0.5")
    assert len(json.loads(policy.evaluate({"a": 1}))) == fields
