"""Why a policy decides as it does: the trail of the default policy, the values of another, and honesty about both."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frontend.policy.acl import PolicyFiles
from frontend.policy.data import PolicyData, parse_data
from frontend.policy.engine import PolicySources
from frontend.policy.tools.examiner import ExaminerClient
from frontend.policy.tools.explain import ExplainStep, Explanation, explain
from frontend.policy.tools.testing import ORDINARY
from tests.policy.test_default_policy import DATA
from tests.policy.test_documentation import REGO, with_the_additional_rule
from tests.support.examining import RunningExaminer
from tests.support.policy import DEFAULT_POLICY, HEADER, document
from tests.support.properties import FEW

ORDER = [
    "trust", "denied_action", "acl", "scope", "sinks", "allowlist", "hold_high_risk",
    "hold_unresolved_domain", "hold_unresolved_path",
]  # fmt: skip


@pytest.fixture(scope="module")
def examiner() -> Iterator[ExaminerClient]:
    running = RunningExaminer()
    yield running.examiner
    running.close()


def policy(source: str = DEFAULT_POLICY.read_text(), data: dict[str, Any] = DATA) -> PolicyFiles:
    text = json.dumps({"policy_version": "1"} | data)
    parsed = parse_data(text)
    assert isinstance(parsed, PolicyData)
    return PolicyFiles(PolicySources({"gateway.rego": source}, text, "1"), parsed)


def asked(examiner: ExaminerClient, files: PolicyFiles | None = None, **changes: Any) -> Explanation:
    question = json.loads(json.dumps(ORDINARY.as_input())) | {"action_id": "read"} | changes
    return explain(files or policy(), question, examiner)


def step(found: Explanation, rule: str) -> ExplainStep:
    (one,) = [one for one in found.trail if one.rule == rule]
    return one


def test_the_trail_is_in_the_order_of_the_document_and_says_what_each_rule_reads(examiner: ExaminerClient) -> None:
    explanation = asked(examiner, action_risk_level="high")
    assert [one.rule for one in explanation.trail] == ORDER
    assert [one.rule for one in explanation.trail if one.is_deciding] == ["hold_high_risk"]
    assert [one.rule for one in explanation.trail if one.applies] == ["hold_high_risk"]
    assert [(read.name, read.value) for read in step(explanation, "hold_high_risk").reads] == [
        ("input.action_risk_level", '"high"')
    ]
    assert [(read.name, read.value) for read in step(explanation, "acl").reads] == [
        ("input.action_id", '"read"'),
        ('data.acl["agent"].actions', '["read", "pay", "export"]'),
        ('data.acl["*"].actions', '["read"]'),
        ('data.acl["agent"].inherits_wildcard', None),
    ]
    assert step(explanation, "acl").line == DEFAULT_POLICY.read_text().splitlines().index("applies_acl if {") + 1


def test_what_is_not_there_is_said_of_the_whole_and_not_of_its_parts(examiner: ExaminerClient) -> None:
    explanation = asked(examiner, principal="nobody", action_id="pay")
    assert explanation.decision is not None
    assert explanation.decision.rule == "acl"
    assert ('data.acl["nobody"]', None) in [(read.name, read.value) for read in step(explanation, "acl").reads]
    assert not [read for read in step(explanation, "acl").reads if read.name.startswith('data.acl["nobody"].')]


def test_rules_behind_the_one_that_decides_are_asked_as_well(examiner: ExaminerClient) -> None:
    explanation = asked(examiner, action_trust_verdict="mismatch", scopes=[], action_risk_level="high")
    assert [one.rule for one in explanation.trail if one.applies] == ["trust", "scope", "hold_high_risk"]
    assert [one.rule for one in explanation.trail if one.is_deciding] == ["trust"]


QUESTIONS = st.fixed_dictionaries(
    {
        "principal": st.sampled_from(["agent", "heir", "loner", "stranger"]),
        "action_id": st.sampled_from(["read", "pay", "export", "other"]),
        "action_risk_level": st.sampled_from(["low", "high"]),
        "action_trust_verdict": st.sampled_from(["digest_ok", "digest_ok", "mismatch"]),
        "scopes": st.sampled_from([["tools:call"], []]),
        "requested_sinks": st.lists(st.sampled_from(["http_read", "http_write", "fs_write"]), max_size=2, unique=True),
        "unresolved_domains": st.sampled_from([[], ["a.example"]]),
    }
)


@settings(FEW, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(question=QUESTIONS)
def test_the_first_rule_of_the_trail_that_applies_is_the_one_that_decided(
    examiner: ExaminerClient, question: dict[str, Any]
) -> None:
    explanation = asked(examiner, **question)
    assert explanation.decision is not None
    applying = [one.rule for one in explanation.trail if one.applies]
    assert explanation.decision.rule == (applying[0] if applying else "allow")


def test_a_rule_that_was_added_as_the_document_says_is_in_the_trail(examiner: ExaminerClient) -> None:
    data = {"interns": ["team-summer"], "acl": {"*": {"actions": ["read"]}}}
    explanation = asked(examiner, policy(with_the_additional_rule(), data), owner="team-summer", fs_path="reports/a")
    assert explanation.decision is not None
    assert explanation.decision.rule == "drafts_only"
    drafts = step(explanation, "drafts_only")
    assert (drafts.applies, drafts.is_deciding) == (True, True)
    assert ("data.interns", '["team-summer"]') in [(read.name, read.value) for read in drafts.reads]


def test_of_another_policy_the_values_of_its_rules_are_told(examiner: ExaminerClient) -> None:
    explanation = asked(examiner, policy(REGO[3], {"agents": ["a"]}))
    assert explanation.decision is not None
    assert (explanation.decision.rule, explanation.trail) == ("not_an_agent", ())
    assert [(value.rule, value.outcome, value.text, value.line) for value in explanation.values] == [
        ("denial", "value", '"not_an_agent"', 5)
    ]


def test_a_policy_that_gives_no_decision_is_explained_as_that(examiner: ExaminerClient) -> None:
    body = f'decision := {document()} if input.action_version != "9.9.9"\n\nbroken := 1 / count(input.targets)\n'
    explanation = asked(examiner, policy(HEADER + body), action_version="9.9.9")
    assert explanation.decision is None
    assert explanation.error == "data.gateway.decision is undefined for this input"
    assert [(value.rule, value.outcome) for value in explanation.values] == [("broken", "error")]
