"""Patterns of a policy that an agent's text could make run for ever are refused at load, with their place."""

from pathlib import Path

import pytest

from frontend.policy.acl import read_policy
from frontend.policy.engine import PolicyRefused
from frontend.policy.patterns import pattern_problems

HEAD = "package gateway\n\nimport rego.v1\n\n"


def problems(rule: str) -> list[str]:
    return pattern_problems({"p.rego": HEAD + rule + "\n"})


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("regex.match(`^(a+)+$`, input.fs_path)", '"^(a+)+$"'),
        ('regex.match("^(\\\\w+\\\\s?)*$", input.fs_path)', '"^(\\\\w+\\\\s?)*$"'),
        ('regex.split(  "(a|a)*", input.fs_path)', '"(a|a)*"'),
        ("regex.find_n(`(.*a)*x`, input.fs_path, 1)", '"(.*a)*x"'),
    ],
)
def test_a_pattern_with_exponentially_many_ways_is_told(call: str, shown: str) -> None:
    said = "can be matched in exponentially many ways, and the text may be an agent's"
    assert problems(f"slow if {call}") == [f"p.rego:5: the pattern {shown} {said}"]


@pytest.mark.parametrize(
    "rule",
    [
        "fine if regex.match(`^[a-z]+(-[a-z]+)*$`, input.fs_path)",
        'fine if regex.match(data.pattern, input.fs_path)',
        'fine if regex.match("(?i)^(a+)+$", input.fs_path)',
        'fine if input.fs_path == "(a+)+" # regex.match("(a+)+", x)',
        'fine if regex.match("\\q", input.fs_path)',
    ],
)  # fmt: skip
def test_another_is_not(rule: str) -> None:
    assert problems(rule) == []


def test_a_policy_with_such_a_pattern_is_refused_beside_everything_else(tmp_path: Path) -> None:
    (tmp_path / "p.rego").write_text(HEAD + "slow if regex.match(`(a|a)*`, input.fs_path)\n")
    with pytest.raises(PolicyRefused) as refused:
        read_policy(str(tmp_path))
    assert [problem.removeprefix(f"{tmp_path}/")[:20] for problem in refused.value.problems] == [
        "data.json: is missin",
        "p.rego:5: the patter",
    ]
