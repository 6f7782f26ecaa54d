"""Rego tests: finds them, runs them and reports each result (`gateway policy test`, docs/policy.md).

A test is a rule named `test_…` in a file `*_test.rego`; it passes when its value is true. Each is asked over the same
ordinary question, which it changes by `with`, and over the folder's own data. Guarantees that a test that hangs,
crashes or fails costs no other its outcome.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from frontend.files.claimed import claimed_names
from frontend.files.problems import printable
from frontend.policy.acl import MAX_POLICY_FILES, read_policy, read_texts
from frontend.policy.engine import PolicyRefused
from frontend.policy.question import Question
from frontend.policy.rules import RegoRule, rules_of
from frontend.policy.tools.examiner import ExaminerClient
from ipc.messages.checking import Evaluated

MAX_TESTS = 2000
COMPILE_SECONDS = 120.0
"""Every `with` makes the evaluator compile another copy of the rules."""

ORDINARY = Question(
    principal="agent",
    owner=None,
    identity_method="peercred",
    identity_issuer=None,
    identity_subject=None,
    token_binding=None,
    action_id="action",
    action_version="1.0.0",
    action_risk_level="low",
    action_trust_verdict="digest_ok",
    scopes=("tools:call",),
    required_scopes=("tools:call",),
    requested_sinks=(),
    requested_secrets=(),
    egress_profile="none",
    targets=(),
    unresolved_domains=(),
    unresolved_paths=(),
    fs_path=None,
    calls_remaining=3,
    request_hash="sha256:" + "0" * 64,
)
"""The input of every test before its own `with`: a call that nothing is special about."""

_SAID = {
    "undefined": "is undefined: something in it does not hold",
    "timeout": "took too long",
    "crashed": "crashed the evaluator",
}


class Tried(msgspec.Struct, frozen=True):
    """One test and its outcome. `said` is why it failed; `printed` what its `print(…)` wrote."""

    name: str
    file: str
    line: int
    is_passed: bool
    said: str
    printed: str
    seconds: float


def run_tests(policy_dir: str, examiner: ExaminerClient) -> Iterator[Tried]:
    """Every test of a folder, in the order of the files. Raises PolicyRefused, ExaminerLost."""
    policy = read_policy(policy_dir)
    tests = _read_tests(Path(policy_dir))
    rules = [rule for rule in rules_of(tests).values() if rule.name.startswith("test_") and not rule.is_function]
    if len(rules) > MAX_TESTS:
        raise PolicyRefused((f"{policy_dir}: more than {MAX_TESTS} tests",))
    modules = {**policy.sources.modules, **tests}
    examiner.compile(modules, policy.sources.data, [rule.entry for rule in rules], seconds=COMPILE_SECONDS)
    for rule in rules:
        yield _outcome(rule, policy_dir, examiner.value(rule.entry, ORDINARY.as_input()))


def _read_tests(folder: Path) -> dict[str, str]:
    """Texts of `*_test.rego` by file name, under the same bounds as the policy itself."""
    problems: list[str] = []
    names, refusals = claimed_names(folder, lambda name: name.endswith("_test.rego"))
    problems += [f"{folder / one.name}: {one.problem} {one.mend}" for one in refusals]
    if len(names) > MAX_POLICY_FILES:
        raise PolicyRefused((f"{folder}: more than {MAX_POLICY_FILES} files of tests",))
    texts = read_texts(folder, names, problems)
    if problems:
        raise PolicyRefused(tuple(problems))
    return texts


def _outcome(rule: RegoRule, policy_dir: str, answer: Evaluated) -> Tried:
    is_passed = answer.outcome == "value" and answer.text == "true"
    if is_passed:
        said = ""
    elif answer.outcome == "value":
        said = f"is {printable(answer.text)}, not true"
    else:
        said = _SAID.get(answer.outcome, printable(answer.text))
    file = str(Path(policy_dir) / rule.file)
    return Tried(rule.name, file, rule.line, is_passed, said, answer.printed, answer.seconds)
