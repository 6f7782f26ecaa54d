"""Approval allowlist entry: a pair for which there is no hold."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row


@row("allowlist-entry/bypasses-hold")
def test_the_pair_is_not_held_and_other_pairs_are(gate: Deployment) -> None:
    agent, operator = gate.agent(), gate.operator()
    pair = {"action_id": "held_digest", "agent_id": gate.principal}
    other = {"action_id": "held_file", "agent_id": "somebody-else"}
    assert agent.execute("held_digest", {"text": "before"}).status_code == 202
    assert operator.post("/v1/admin/policy/allowlist", pair).status_code == 200
    assert operator.post("/v1/admin/policy/allowlist", other).status_code == 200
    try:
        assert agent.execute("held_digest", {"text": "with"}).status_code == 200
        assert agent.execute("held_file", {"path": "a", "content": "b"}).status_code == 202
    finally:
        for one in (pair, other):
            assert operator.delete("/v1/admin/policy/allowlist", one).status_code == 200
    assert agent.execute("held_digest", {"text": "after"}).status_code == 202
