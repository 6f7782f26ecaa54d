"""Policy folders out of spoilt files: always a policy or problems with places, and never anything else."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.policy.acl import read_policy
from frontend.policy.data import PolicyData, parse_data
from frontend.policy.engine import PolicyRefused
from frontend.policy.problems import policy_problems
from frontend.policy.rules import reads_of, rules_of
from tests.support.manifests import EXAMPLES
from tests.support.mutations import spoilt
from tests.support.policy import DEFAULT_POLICY

DATA = (EXAMPLES / "policy" / "data.json").read_bytes()
WORDS = [
    "{", "}", "[", "]", ":", ",", '"', "\\", "\\ud800", "\\u0000", "NaN", "Infinity", "-0", "1e999", "null", "true",
    '"acl"', '"policy_version"', '"*"', '"gateway": 1,', '"allowlist": {},', "\n", "\x00", "\ufeff", "0" * 50,
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("policy")
    return directory


@given(spoilt([DATA], WORDS))
def test_spoilt_data_is_data_or_problems_with_lines(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    outcome = parse_data(text)
    if isinstance(outcome, PolicyData):
        assert 0 < len(outcome.policy_version) <= 128
        assert outcome.policy_version == json.loads(text)["policy_version"]
        return
    assert outcome
    for problem in policy_problems((f"/p/data.json{one}" for one in outcome), "/p"):
        assert problem.file == "/p/data.json"
        assert 0 <= problem.line <= text.count("\n") + 1
        assert str(problem).isprintable()


@given(spoilt([DATA], WORDS), st.sampled_from([DEFAULT_POLICY.read_bytes(), b"", b"\xff", b"package p"]))
def test_a_spoilt_folder_is_a_policy_or_problems_with_files(folder: Path, data: bytes, rego: bytes) -> None:
    (folder / "data.json").write_bytes(data)
    (folder / "gateway.rego").write_bytes(rego)
    try:
        sources = read_policy(str(folder)).sources
    except PolicyRefused as refused:
        problems = policy_problems(refused.problems, str(folder))
        sources = None
    else:
        problems = []
    assert (sources is None) is bool(problems)
    assert {problem.file for problem in problems} <= {str(folder / "data.json"), str(folder / "gateway.rego")}


@given(spoilt([DEFAULT_POLICY.read_bytes()], ["{", "}", '"', "`", "#", "\n", "[", "]", "(", "applies_x if ", "input."]))
def test_spoilt_rego_is_read_for_its_rules(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    rules = rules_of({"gateway.rego": text})
    for rule in rules.values():
        assert 1 <= rule.line <= text.count("\n") + 1
        reads_of(rule, rules)
