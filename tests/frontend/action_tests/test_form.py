from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.action_tests.form import ActionTest, ExpectedDecision, PlayedUpstream, read_tests
from frontend.actions.registry import load_manifests
from frontend.files.problems import Report

WHOLE = """\
- name: refunds a part
  principal: billing-agent
  request: {id: inv_7, amount_cents: 2500}
  expect:
    decision: hold
    rule: approval_required
    sends: {method: POST, url: "https://billing.corp.example/invoices/inv_7/refunds", body: {amount: 2500}}
  upstream: {status: 201, headers: {Location: /r/1}, body: {id: r_1}}
  result: {status: 201}
  outcome: verified
- name: refuses an amount below one
  principal: billing-agent
  request: {id: inv_7, amount_cents: 0}
  expect: {error: schema_violation}
"""


def read(folder: Path, text: str) -> tuple[list[ActionTest], list[str]]:
    file = folder / "refund.test.yaml"
    file.write_text(text)
    report = Report("refund.test.yaml")
    return read_tests(file, report), [str(problem) for problem in report.problems]


def test_every_member_of_a_test_is_read(tmp_path: Path) -> None:
    tests, problems = read(tmp_path, WHOLE)
    assert problems == []
    refund, refused = tests
    assert (refund.name, refund.principal, refund.request) == (
        "refunds a part", "billing-agent", {"id": "inv_7", "amount_cents": 2500},
    )  # fmt: skip
    url = "https://billing.corp.example/invoices/inv_7/refunds"
    assert refund.expect == ExpectedDecision(
        decision="hold", rule="approval_required", sends={"method": "POST", "url": url, "body": {"amount": 2500}}
    )
    assert refund.upstream == PlayedUpstream(201, {"Location": "/r/1"}, {"id": "r_1"})
    assert (refund.result, refund.outcome, refund.is_run) == ({"status": 201}, "verified", True)
    assert (refused.expect.error, refused.is_run, refused.line) == ("schema_violation", False, 11)


def test_all_mistakes_of_a_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    _, problems = read(
        tmp_path,
        """\
- name: one
  principal: billing agent
  expect: {decision: held}
- name: one
  principal: a
  expect: {decision: deny, sends: {uri: /}}
  upstream: {error: refused, status: 200}
  outcom: verified
- principal: a
  expect: {}
""",
    )
    assert [problem.split("  ")[0] for problem in problems] == [
        f"refund.test.yaml:{n}" for n in (2, 3, 6, 7, 8, 7, 9, 10, 4)
    ]
    told = "\n".join(problems)
    for part in ("[0].principal", "[0].expect.decision", '"uri"', "Did you mean outcome?", "does not run", "the name"):
        assert part in told


@pytest.mark.parametrize("text", ["name: one\n", "[]\n", "- 1\n", "", "- [", "\x00", "- {expect: 3}"])
def test_a_file_that_is_no_list_of_tests_is_a_problem(tmp_path: Path, text: str) -> None:
    _, problems = read(tmp_path, text)
    assert problems != []


@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_give_tests_or_problems(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("noise") / "a.test.yaml"
    file.write_bytes(data)
    report = Report("a.test.yaml")
    assert read_tests(file, report) or report.problems


def test_a_file_of_tests_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / "refund.test.yaml").write_text(WHOLE)
    assert load_manifests(tmp_path, has_proxy=False) == ((), [])
