"""The policies that the repository ships: they load, and the example one fits the example actions."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from frontend.policy.acl import PolicyFiles, read_policy
from frontend.policy.question import Decision, parse_decision
from ipc.messages.deciding import Ask
from tests.support.policy import REPOSITORY, PolicyPeer, question

PRODUCTION = REPOSITORY / "contrib" / "policy"
EXAMPLE = REPOSITORY / "contrib" / "examples" / "policy"
MANIFESTS = sorted((REPOSITORY / "contrib" / "examples" / "actions").glob("*.yaml"))


@pytest.fixture(scope="module")
def example() -> PolicyFiles:
    return read_policy(str(EXAMPLE))


@pytest.fixture(scope="module")
def peer(example: PolicyFiles) -> Iterator[PolicyPeer]:
    peer = PolicyPeer()
    assert peer.load(example.sources) is None
    yield peer
    peer.close()


def manifest(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = yaml.safe_load(path.read_text())
    return fields


def decide(peer: PolicyPeer, action: dict[str, Any], **changes: object) -> Decision:
    asked = {
        "action_id": action["action_id"],
        "action_risk_level": action["risk_level"],
        "requested_sinks": tuple(action["declared_side_effects"]),
    }
    peer.channel.send(Ask(1, question(**(asked | changes)).as_input()))
    verdict = peer.verdict()
    assert verdict.document is not None, verdict.error
    return parse_decision(verdict.document)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_example_policy_decides_the_example_actions_as_they_say(peer: PolicyPeer, path: Path) -> None:
    action = manifest(path)
    decision = decide(peer, action)
    if action["action_id"] == "forbidden_export":
        assert (decision.rule, decision.deny_reason) == (
            "denied_action",
            "exports of tables are not allowed for any agent",
        )
    elif action["risk_level"] in ("high", "critical"):
        assert (decision.allow, decision.requires_approval) == (True, True)
    else:
        assert (decision.allow, decision.requires_approval, decision.rule) == (True, False, "allow")


def test_the_example_sinks_are_those_of_the_example_manifests(example: PolicyFiles) -> None:
    entry = example.data.acl["dev:anonymous"]
    derived = {
        sink
        for action in map(manifest, MANIFESTS)
        if action["action_id"] in entry.actions
        for sink in action["declared_side_effects"]
    }
    assert set(entry.sinks) == derived
    assert set(entry.actions) == {manifest(path)["action_id"] for path in MANIFESTS} - {"forbidden_export"}


def test_the_example_policy_denies_the_forbidden_export_to_everyone(peer: PolicyPeer) -> None:
    for principal in ("dev:anonymous", "somebody", "*"):
        decision = decide(peer, {"action_id": "forbidden_export", "risk_level": "high", "declared_side_effects": []},
                          principal=principal)  # fmt: skip
        assert decision.deny_reason == "exports of tables are not allowed for any agent"


def test_the_production_default_allows_nobody_anything(peer: PolicyPeer) -> None:
    shipped = read_policy(str(PRODUCTION))
    assert shipped.data.acl == {}
    other = PolicyPeer()
    try:
        assert other.load(shipped.sources) is None
        for path in MANIFESTS:
            assert decide(other, manifest(path)).rule == "acl"
    finally:
        other.close()


def test_the_example_rules_are_the_production_rules() -> None:
    assert (EXAMPLE / "gateway.rego").read_text() == (PRODUCTION / "gateway.rego").read_text()
