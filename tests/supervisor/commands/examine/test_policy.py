"""`gateway policy test|check|explain` as commands: their processes, their exit codes, and what is left."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.policy.tools.testing import ORDINARY
from ipc.process.exits import Exit
from tests.supervisor.test_cli import here
from tests.support.checked import DEFAULT_REGO, gateway
from tests.support.manifests import REPOSITORY

EXAMPLES = REPOSITORY / "contrib" / "examples" / "actions"
TESTS = """package gateway_test

import rego.v1

test_that_passes if {
	data.gateway.decision.rule == "acl"
}

test_that_is_false := false

test_that_is_undefined if {
	found := data.gateway.decision with data.acl as {"agent": {"actions": ["action"]}}
	print("the rule is", found.rule)
	found.rule == "acl"
}

test_that_fails if 1 / 0 == 1

test_without_end if count([1 | some x in numbers.range(1, 9000); some y in numbers.range(1, 9000); x == y + 0.5]) == 1

test_that_takes(arguments) := arguments

helper if true
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "gateway.rego").write_text(DEFAULT_REGO.read_text())
    (folder / "data.json").write_text('{"policy_version": "p-1", "acl": {"agent": {"actions": ["read"]}}}')
    return folder


def question(folder: Path, **changes: Any) -> str:
    document = json.loads(msgspec.json.encode(ORDINARY.as_input())) | changes
    (folder / "question.json").write_text(json.dumps(document, indent=2))
    return "question.json"


def test_each_test_has_its_outcome_and_its_place_and_costs_no_other_its_own(policy: Path) -> None:
    (policy / "gateway_test.rego").write_text(TESTS)
    done = gateway(policy, "policy", "test", ".")
    assert (done.returncode, done.stderr) == (Exit.FAILED, "")
    lines = re.sub(r"\d+ ms", "N ms", done.stdout).replace(f"{policy}/gateway_test.rego", "T").splitlines()
    assert lines == [
        "T:5  pass  test_that_passes  N ms",
        "T:9  FAIL  test_that_is_false is false, not true",
        "T:11  FAIL  test_that_is_undefined is undefined: something in it does not hold",
        "    the rule is allow",
        "T:17  FAIL  test_that_fails eval_builtin_error: divide by zero",
        "T:19  FAIL  test_without_end took too long",
        "5 tests, 1 passed, 4 failed.",
    ]


def test_a_good_policy_is_called_good_and_nothing_is_left_behind(policy: Path) -> None:
    before = sorted(path.name for path in policy.parent.rglob("*"))
    done = gateway(policy.parent, "policy", "check", "policy")
    said = f"{policy}: no problems, policy version p-1. Decisions are remembered.\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")
    assert sorted(path.name for path in policy.parent.rglob("*")) == before


def test_a_policy_without_remembered_decisions_gets_the_reason(policy: Path) -> None:
    rego = policy / "gateway.rego"
    rego.write_text(
        rego.read_text().replace(
            ":= input.requested_sinks if", ":= [sink | some sink in input.requested_sinks; input] if"
        )
    )
    done = here(policy.parent, "policy", "check", "policy")
    assert done.returncode == Exit.OK
    assert done.stdout.endswith("Decisions are not remembered: data.gateway.sinks_for uses input as a whole.\n")


def test_every_problem_of_a_policy_is_reported_with_its_place(policy: Path) -> None:
    rego = policy / "gateway.rego"
    rego.write_text(rego.read_text().replace("input.required_scopes", "input.required_scopes; not mispelt"))
    done = here(policy.parent, "policy", "check", "policy", "--json")
    assert done.returncode == Exit.CONFIG
    problems = json.loads(done.stdout)["problems"]
    assert [(one["file"], one["field"]) for one in problems] == [
        (str(rego), "data.gateway.applies_scope"),
        (str(rego), "data.gateway.reason"),
    ]
    assert all(one["line"] > 1 for one in problems)
    (policy / "data.json").write_text('{\n"policy_version": "1",\n"acl": {"agent": {"actons": []}}\n}')
    done = here(policy.parent, "policy", "check", "policy")
    assert done.stdout.startswith(f"{policy}/data.json:3  acl.agent: Object ")


def test_a_rule_that_can_not_be_read_is_a_problem_of_check_and_test(policy: Path) -> None:
    (policy / "freeze.rego").symlink_to("../away/freeze.rego")
    for command in ("check", "test"):
        done = gateway(policy.parent, "policy", command, "policy")
        assert done.returncode == Exit.CONFIG
        assert f"{policy.name}/freeze.rego  is a link that leads to no readable file" in done.stdout


def test_a_configuration_may_name_the_policy(policy: Path) -> None:
    (policy.parent / "g.toml").write_text('policy_dir = "policy"\n')
    asked = question(policy.parent, action_id="pay\x1b[2J")
    done = gateway(policy.parent, "policy", "explain", "--config", "g.toml", "--input", asked)
    assert done.returncode == 0
    assert done.stdout.startswith("DENIED by rule acl: agent may not call pay[2J; it may call read\n")
    assert "agent asks for pay\\x1b[2J 1.0.0" in done.stdout
    (policy.parent / "g.toml").write_text("policy_dir = 3\n")
    done = gateway(policy.parent, "policy", "explain", "--config", "g.toml", "--input", asked)
    assert (done.returncode, done.stdout) == (Exit.CONFIG, "")
    assert "g.toml:1  policy_dir = 3" in done.stderr


def test_a_check_asks_for_every_reason_and_only_warns_of_data_that_may_come(policy: Path) -> None:
    rego = policy / "gateway.rego"
    right = rego.read_text()
    rego.write_text(right.replace('reason("acl")', 'reason("alc")'))
    done = here(policy.parent, "policy", "check", "policy")
    assert done.returncode == Exit.CONFIG
    assert 'the denial "acl" has no reason: add reason("acl") := …; did you mean alc?' in done.stdout
    assert re.search(rf"^{re.escape(str(rego))}:\d+  reason\(\"alc\"\) belongs to no denial", done.stdout, re.MULTILINE)

    rego.write_text(right + "\njunior if input.owner in data.junior\n")
    line = right.count("\n") + 2
    done = here(policy.parent, "policy", "check", "policy")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        Exit.OK, f"{rego}:{line}  warning: data.junior: data.json does not have it."
    )  # fmt: skip
    told = json.loads(here(policy.parent, "policy", "check", "policy", "--json").stdout)
    assert told["problems"] == []
    assert [(one["file"], one["line"]) for one in told["warnings"]] == [(str(rego), line)]


def test_a_check_warns_of_a_section_of_data_whose_name_is_misspelt(policy: Path) -> None:
    data = policy / "data.json"
    whole = json.loads(data.read_text())
    data.write_text(json.dumps(whole | {"teams": {"a": 1}, "alc": whole.pop("acl")}, indent=1))
    line = data.read_text().splitlines().index(' "alc": {') + 1
    done = here(policy.parent, "policy", "check", "policy")
    told = f"{data}:{line}  warning: alc: no rule reads it; did you mean acl?"
    assert (done.returncode, done.stdout.splitlines()[0]) == (Exit.OK, told), "teams is a name of their own"
    rego = policy / "gateway.rego"
    rego.write_text(rego.read_text() + "\njunior if data[input.owner]\n")
    assert "alc" not in here(policy.parent, "policy", "check", "policy").stdout


def test_a_check_beside_manifests_warns_of_values_that_no_action_offers(policy: Path) -> None:
    rego = policy / "gateway.rego"
    right = rego.read_text()
    rego.write_text(right + '\nlarge if input.request["/amount"] > 100\n')
    line = right.count("\n") + 2
    asked = ("policy", "check", "policy", "--manifests", str(EXAMPLES))
    done = here(policy.parent, *asked)
    said = "/amount is in the policy_input of no action; did you mean /amount_cents?"
    assert (done.returncode, done.stdout.splitlines()[0]) == (Exit.OK, f"{rego}:{line}  warning: {said}")
    assert "warning" not in here(policy.parent, *asked[:3]).stdout, "no manifests, no doubts"
    done = here(policy.parent, *asked[:4], "nowhere")
    assert (done.returncode, "the manifests folder cannot be read" in done.stdout) == (Exit.CONFIG, True)


def test_a_check_refuses_a_field_that_no_question_has_with_its_line(policy: Path) -> None:
    rego = policy / "gateway.rego"
    text = rego.read_text().replace("data.denied_actions[input.action_id]", "data.denied_actions[input.actionid]", 1)
    rego.write_text(text)
    line = text[: text.index("input.actionid")].count("\n") + 1
    done = here(policy.parent, "policy", "check", "policy")
    said = "input.actionid: no question has this field; the nearest is input.action_id."
    assert (done.returncode, done.stdout.splitlines()[0]) == (Exit.CONFIG, f"{rego}:{line}  {said}")
