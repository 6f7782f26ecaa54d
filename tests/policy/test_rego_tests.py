"""The Rego tests of the default policy: they pass, and each rule and each reason has one that needs it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from frontend.policy.rules import rules_of
from frontend.policy.tools.examiner import ExaminerClient
from frontend.policy.tools.testing import ORDINARY, run_tests
from tests.policy.test_documentation import REGO, with_the_additional_rule
from tests.support.examining import RunningExaminer
from tests.support.policy import DEFAULT_POLICY
from workers.rego.evaluator import CompiledPolicy

FOLDER = DEFAULT_POLICY.parent
SOURCE = DEFAULT_POLICY.read_text()
TESTS = (FOLDER / "gateway_test.rego").read_text()
DOCUMENT = json.loads(msgspec.json.encode(ORDINARY.as_input()))
CONDITIONS = re.findall(r"^(applies_\w+) if", SOURCE, re.MULTILINE)
REASONS = re.findall(r'^reason\("(\w+)"\)', SOURCE, re.MULTILINE)


@pytest.fixture(scope="module")
def examiner() -> Iterator[ExaminerClient]:
    running = RunningExaminer()
    yield running.examiner
    running.close()


def has_failure(policy: str, rule: str) -> bool:
    """Whether a test that speaks of `rule` fails with this policy in the place of the default one."""
    tests = [one for one in rules_of({"t": TESTS}).values() if one.name.startswith("test_") and f'"{rule}"' in one.text]
    assert tests
    some = "\n\n".join([TESTS.partition("\ntest_")[0], *(one.text for one in tests)])
    modules = {"gateway.rego": policy, "gateway_test.rego": some + "\n"}
    compiled = CompiledPolicy(modules, (FOLDER / "data.json").read_text(), [one.entry for one in tests])
    return any(compiled.value(DOCUMENT, one.entry) != "true" for one in tests)


def test_the_tests_of_the_default_policy_pass(examiner: ExaminerClient) -> None:
    tried = list(run_tests(str(FOLDER), examiner))
    assert len(tried) >= 24
    assert not [one for one in tried if not one.is_passed]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_without_a_rule_a_test_fails(condition: str) -> None:
    without = re.sub(
        rf"^{condition} if ", f"{condition} if false\n\nunused_{condition} if ", SOURCE, flags=re.MULTILINE
    )
    assert has_failure(without, condition.removeprefix("applies_"))


@pytest.mark.parametrize("reason", REASONS)
def test_with_another_reason_a_test_fails(reason: str) -> None:
    other = SOURCE.replace(f'reason("{reason}") :=', f'reason("{reason}") := "other"\n\nunused("{reason}") :=')
    assert has_failure(other, reason)


def test_the_test_in_the_document_tests_the_rule_in_the_document(tmp_path: Path, examiner: ExaminerClient) -> None:
    (tmp_path / "data.json").write_text('{"policy_version": "1", "interns": ["team-summer"]}')
    (tmp_path / "gateway_test.rego").write_text(REGO[4])
    (tmp_path / "gateway.rego").write_text(with_the_additional_rule())
    assert [one.is_passed for one in run_tests(str(tmp_path), examiner)] == [True]
    (tmp_path / "gateway.rego").write_text(SOURCE)
    assert [one.is_passed for one in run_tests(str(tmp_path), examiner)] == [False]


def test_as_it_is_none_fails() -> None:
    assert not has_failure(SOURCE, "acl")


def test_there_is_a_reason_for_every_rule_that_denies() -> None:
    denial = SOURCE[SOURCE.index("denial :=") : SOURCE.index("hold :=")]
    assert re.findall(r'"(\w+)" if', denial) == REASONS
