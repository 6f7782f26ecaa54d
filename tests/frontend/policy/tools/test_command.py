"""The output of `gateway policy test` and `gateway policy explain`, with a real examiner."""

import argparse
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frontend.policy.tools import command
from frontend.policy.tools.examiner import ExaminerClient
from frontend.policy.tools.testing import ORDINARY
from ipc.process.exits import Exit
from tests.support.examining import RunningExaminer
from tests.support.policy import DEFAULT_POLICY, REPOSITORY, document

DOCUMENT = (REPOSITORY / "docs" / "policy.md").read_text()
HEADER = "package gateway_test\n\nimport rego.v1\n\n"

Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def examiner() -> Iterator[ExaminerClient]:
    running = RunningExaminer()
    yield running.examiner
    running.close()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    folder = tmp_path / "policy"
    folder.mkdir()
    (folder / "gateway.rego").write_text(DEFAULT_POLICY.read_text())
    (folder / "data.json").write_text('{"policy_version": "p-1", "acl": {"agent": {"actions": ["read"]}}}')
    return folder


@pytest.fixture
def run(policy: Path, examiner: ExaminerClient, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one of the two; returns exit code and standard output."""

    def do(which: Callable[[argparse.Namespace, ExaminerClient], int], **options: Any) -> tuple[int, str]:
        given = {"folder": str(policy), "json": False, "asked_fd": None} | options
        code = which(argparse.Namespace(**given), examiner)
        return code, capsys.readouterr().out

    return do


def question(policy: Path, **changes: Any) -> str:
    asked = json.loads(msgspec.json.encode(ORDINARY.as_input())) | {"action_id": "read"} | changes
    file = policy.parent / "question.json"
    file.write_text(json.dumps(asked, indent=2))
    return str(file)


def test_outcomes_are_there_for_programs_too(policy: Path, run: Run) -> None:
    (policy / "gateway_test.rego").write_text(HEADER + "test_that_passes if true\n")
    code, out = run(command.test, json=True)
    assert code == 0
    report = json.loads(out)
    assert (report["passed"], report["failed"]) == (1, 0)
    assert report["tests"][0] | {"seconds": 0} == {
        "name": "test_that_passes", "file": f"{policy}/gateway_test.rego", "line": 5, "is_passed": True, "said": "",
        "printed": "", "seconds": 0,
    }  # fmt: skip


def test_no_test_at_all_is_no_success(policy: Path, run: Run) -> None:
    assert run(command.test) == (Exit.FAILED, f"{policy}: no tests: rules named test_… in *_test.rego.\n")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("test_a if {\n\tdata.gateway.decision with input as {}\n}\n", "6  this evaluator can't replace all of input"),
        ("test_a if {\n\ttrue\n}\n)\n", "8  this ) closes nothing."),
        (
            "test_a if {\n\tnot mispelt\n}\n",
            '6  data.gateway_test.test_a: "mispelt" in "not mispelt" never gets a value',
        ),
    ],
)
def test_a_broken_test_is_told_with_its_place_and_nothing_is_run(policy: Path, run: Run, body: str, said: str) -> None:
    (policy / "gateway_test.rego").write_text(HEADER + body)
    code, out = run(command.test)
    assert code == Exit.CONFIG
    assert out.startswith(f"{policy}/gateway_test.rego:{said}")


def test_a_test_file_that_is_no_text_is_told(policy: Path, run: Run) -> None:
    (policy / "gateway_test.rego").write_bytes(b"package a\n\xff")
    assert run(command.test) == (Exit.CONFIG, f"{policy}/gateway_test.rego:2  is not UTF-8.\n1 problem.\n")


def test_a_decision_is_explained_with_its_trail(policy: Path, run: Run) -> None:
    code, out = run(command.explain_question, input=question(policy))
    lines = out.splitlines()
    assert (code, lines[0]) == (0, "ALLOWED by rule allow")
    assert lines[1] == f"  agent asks for read 1.0.0; policy {policy}, version p-1"
    assert "  acl                     does not apply" in lines
    assert lines[-1] == "→ allow                   the decision when no rule above applies"


def test_rules_behind_the_deciding_one_are_shown_as_not_reached(policy: Path, run: Run) -> None:
    code, out = run(command.explain_question, input=question(policy, scopes=[], action_risk_level="high"))
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "DENIED by rule scope: read needs the scopes tools:call; the lease has nothing"
    start = lines.index("→ scope                   applies")
    assert lines[start + 1 :] == [
        '                            input.required_scopes = ["tools:call"]',
        "                            input.scopes = []",
        "  sinks                   not reached",
        "  allowlist               not reached",
        "  hold_high_risk          not reached; would apply",
        '                            input.action_risk_level = "high"',
        "  hold_unresolved_domain  not reached",
        "  hold_unresolved_path    not reached",
    ]


def test_explanations_are_there_for_programs_too(policy: Path, run: Run) -> None:
    code, out = run(command.explain_question, input=question(policy, action_risk_level="high"), json=True)
    explanation = json.loads(out)
    assert (code, explanation["decision"]["rule"]) == (0, "hold_high_risk")
    deciding = [one for one in explanation["trail"] if one["is_deciding"]]
    assert deciding[0]["reads"] == [{"name": "input.action_risk_level", "value": '"high"'}]
    assert (explanation["values"], explanation["error"]) == ([], "")


def test_another_policy_is_explained_by_the_values_of_its_rules(policy: Path, run: Run) -> None:
    body = f"decision := {document()} if input.action_version == data.it\n\nlimit := 3\n\nnothing if false\n"
    (policy / "gateway.rego").write_text("package gateway\n\nimport rego.v1\n\n" + body)
    (policy / "data.json").write_text('{"policy_version": "p-1", "it": "1.0.0"}')
    shown = [
        "",
        "values of the other rules of package gateway (the evaluator tells values, not the way that it took):",
        "  gateway.rego:7  limit = 3",
        "  gateway.rego:9  nothing is undefined",
    ]
    code, out = run(command.explain_question, input=question(policy))
    assert (code, out.splitlines()[2:]) == (0, shown)
    code, out = run(command.explain_question, input=question(policy, action_version="2.0.0"))
    assert (code, out.splitlines()[2:]) == (Exit.FAILED, shown)
    assert out.startswith("NO DECISION: data.gateway.decision is undefined for this input (the call would be 503")


def test_a_question_that_nobody_could_ask_is_told_with_its_lines(policy: Path, run: Run) -> None:
    file = Path(question(policy))
    file.write_text(file.read_text().replace('"low"', '"lo"').replace('"owner"', '"ownr"'))
    code, out = run(command.explain_question, input=str(file))
    assert code == Exit.CONFIG
    assert out.replace(str(policy.parent), "D").splitlines() == [
        "D/question.json  owner is missing. Add it: a text or null.",
        'D/question.json:3  unknown field "ownr". Did you mean owner?',
        'D/question.json:10  action_risk_level = "lo": must be one of low, medium, high, critical. Did you mean low?',
        "3 problems.",
    ]


def test_the_question_of_the_document_is_one(policy: Path, run: Run) -> None:
    (shown,) = [block for block in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL) if "request_hash" in block]
    (policy.parent / "q.json").write_text(shown)
    assert run(command.explain_question, input=str(policy.parent / "q.json"))[0] == 0


def test_the_transcript_of_the_document_is_what_is_said(policy: Path, run: Run) -> None:
    (shown,) = re.findall(r"^HELD by rule.*?^```", DOCUMENT, re.MULTILINE | re.DOTALL)
    block = next(one for one in re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL) if "request_hash" in one)
    (policy.parent / "q.json").write_text(block.replace("billing-agent", "dev:anonymous"))
    folder = REPOSITORY / "contrib" / "examples" / "policy"
    code, out = run(command.explain_question, input=str(policy.parent / "q.json"), folder=str(folder))
    assert code == 0
    said = out.replace(str(REPOSITORY), "/src").splitlines()
    assert [line for line in shown.splitlines()[:-1] if line != "  …" and line not in said] == []
