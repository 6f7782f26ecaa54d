"""The examples of docs/policy.md work as described."""

import json
import re
from collections.abc import Iterator

import pytest

from frontend.policy.data import PolicyData, parse_data
from frontend.policy.engine import PolicySources
from frontend.policy.question import Decision, Question, parse_decision
from ipc.messages.deciding import Ask
from tests.support.policy import DEFAULT_POLICY, REPOSITORY, PolicyPeer, question

TEXT = (REPOSITORY / "docs" / "policy.md").read_text()
REGO: list[str] = re.findall(r"```rego\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def peer() -> Iterator[PolicyPeer]:
    peer = PolicyPeer()
    yield peer
    peer.close()


def decide(peer: PolicyPeer, **changes: object) -> Decision:
    peer.channel.send(Ask(1, question(**changes).as_input()))
    verdict = peer.verdict()
    assert verdict.document is not None, verdict.error
    return parse_decision(verdict.document)


def test_the_example_data_is_good_and_means_what_it_says(peer: PolicyPeer) -> None:
    data, *_ = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    assert isinstance(parse_data(data), PolicyData)
    assert peer.load(PolicySources({"gateway.rego": DEFAULT_POLICY.read_text()}, data, "x")) is None
    assert decide(peer, principal="billing-agent", action_id="http_fetch", requested_sinks=("http_read",)).allow
    assert decide(peer, principal="billing-agent", action_id="text_digest").allow
    assert decide(peer, principal="report-agent", action_id="text_digest").allow
    assert not decide(peer, principal="report-agent", action_id="http_fetch").allow


def with_the_additional_rule() -> str:
    """The default policy with the rule that the document adds to it."""
    condition, branch, reason = REGO[:3]
    default = DEFAULT_POLICY.read_text()
    end = "}\n\nhold :="
    assert default.count(end) == 1
    return default.replace(end, branch + "\n\nhold :=") + "\n" + condition + "\n" + reason


def test_the_additional_rule_fits_into_the_default_rules(peer: PolicyPeer) -> None:
    module = with_the_additional_rule()
    data = {
        "policy_version": "x",
        "interns": ["team-summer"],
        "acl": {"*": {"actions": ["file_write"], "sinks": ["fs_write"]}},
    }
    assert peer.load(PolicySources({"gateway.rego": module}, json.dumps(data), "x")) is None
    asked = {"action_id": "file_write", "requested_sinks": ("fs_write",), "owner": "team-summer"}
    assert decide(peer, **asked, fs_path="drafts/a.txt").allow
    assert decide(peer, **asked, fs_path=None).allow
    assert decide(peer, **(asked | {"owner": "team-winter"}), fs_path="reports/a.txt").allow
    denied = decide(peer, **asked, fs_path="reports/a.txt")
    assert (denied.rule, denied.deny_reason) == ("drafts_only", "interns write below drafts/ only")


def test_the_complete_policy_decides(peer: PolicyPeer) -> None:
    data = '{"policy_version": "x", "agents": ["a"]}'
    assert peer.load(PolicySources({"gateway.rego": REGO[3]}, data, "x")) is None
    assert decide(peer, principal="a").rule == "allow"
    assert decide(peer, principal="a", action_risk_level="critical").requires_approval
    assert decide(peer, principal="b").deny_reason == "b is denied by rule not_an_agent"
    assert decide(peer, principal="a", requested_sinks=("x",)).rule == "no_side_effects"


def test_every_field_of_the_question_and_the_decision_is_described() -> None:
    for name in {*Question.__struct_fields__, *Decision.__struct_fields__} - {"calls_remaining"}:
        assert f"`{name}`" in TEXT
    assert "`budgets_before.calls_remaining`" in TEXT


def test_every_rule_of_the_default_policy_is_described_in_its_order() -> None:
    conditions = re.findall(r"^applies_(\w+) if", DEFAULT_POLICY.read_text(), re.MULTILINE)
    documented = re.findall(r"^\| \w* ?\| `([a-z_]+)` \|", TEXT, re.MULTILINE)
    assert [*conditions, "allow"] == documented
