"""Settings that operators change: epoch, configuration, learned domains and paths, policy, allow-list; and the
metrics."""

from collections.abc import Iterator

import pytest
from gateway_client import AgentClient, Conflict, Executed, Held, Invalid, NotFound, OperatorClient


@pytest.fixture(autouse=True)
def as_before(operator: OperatorClient) -> Iterator[None]:
    """Each test leaves the gateway as it found it."""
    yield
    operator.clear_domains()
    operator.clear_paths()


def test_domains_are_learned_listed_removed_and_cleared(operator: OperatorClient) -> None:
    assert operator.add_domain("http_fetch", "Api.Example.com").domain == "api.example.com"
    operator.add_domain("http_fetch", "*.cdn.example.com")
    operator.add_domain("http_post", "api.example.com")
    assert [(one.action_id, one.domain, one.source, one.added_by) for one in operator.domains("http_fetch")] == [
        ("http_fetch", "api.example.com", "cli", "dev"),
        ("http_fetch", "*.cdn.example.com", "cli", "dev"),
    ]
    with pytest.raises(Conflict, match="domain_already_exists"):
        operator.add_domain("http_fetch", "api.example.com")
    assert operator.remove_domain("http_fetch", "api.example.com")
    with pytest.raises(NotFound, match="domain_not_found"):
        operator.remove_domain("http_fetch", "api.example.com")
    assert operator.clear_domains("http_fetch").cleared
    assert [one.action_id for one in operator.domains()] == ["http_post"]
    operator.clear_domains()
    assert operator.domains() == ()


def test_a_grant_and_its_revocation_are_in_force_for_the_next_call(operator: OperatorClient) -> None:
    granted = operator.grant("billing-agent", ["http_post", "text_digest"])
    assert granted.actions == ("http_post", "text_digest")
    assert granted.sinks == ("http_write",)
    shown = operator.principal("billing-agent")
    assert shown.actions == granted.actions
    assert shown.risk_breakdown is not None
    assert shown.risk_breakdown["medium"] == ("http_post",)
    acl = operator.policy()
    assert acl.principals["billing-agent"].actions == granted.actions
    assert acl.policy_version == shown.policy_version
    with pytest.raises(Invalid, match="unknown_action"):
        operator.grant("billing-agent", ["nothing"])
    kept = operator.revoke("billing-agent", ["http_post"])
    assert (kept.actions, kept.sinks) == (("text_digest",), ())
    assert operator.revoke("billing-agent", ["text_digest"]).actions == ()
    with pytest.raises(NotFound, match="principal_not_found"):
        operator.principal("billing-agent")


def test_the_allowlist_spares_the_approval_and_asks_for_it_again(operator: OperatorClient, agent: AgentClient) -> None:
    payment = {"to": "acct-7", "amount_cents": 301, "currency": "EUR"}
    assert isinstance(agent.execute("payment_transfer", payment), Held)
    allowed = operator.allow("payment_transfer", "dev:anonymous")
    assert (allowed.action_id, allowed.agent_id) == ("payment_transfer", "dev:anonymous")
    try:
        assert isinstance(agent.execute("payment_transfer", payment), Executed)
    finally:
        operator.disallow("payment_transfer", "dev:anonymous")
    assert isinstance(agent.execute("payment_transfer", payment), Held)
    with pytest.raises(NotFound, match="allowlist_entry_not_found"):
        operator.disallow("payment_transfer", "dev:anonymous")


def test_a_revocation_raises_the_epoch_and_agents_go_on_with_new_leases(
    operator: OperatorClient, agent: AgentClient
) -> None:
    agent.execute("text_digest", {"text": ""})
    first = agent.session
    epoch = operator.epoch()
    revoked = operator.revoke_all()
    assert (revoked.previous_epoch, revoked.current_epoch) == (epoch, epoch + 1)
    assert operator.epoch() == epoch + 1
    assert isinstance(agent.execute("text_digest", {"text": ""}), Executed)
    assert agent.session != first
