"""An agent whose lease was renewed goes on in its session: it polls its own hold, and asks for the same one again."""

from dataclasses import replace

from tests.support.gateway import Bearer, Gateway

PAYMENT = {"to": "acct-7", "amount_cents": 25_000, "currency": "EUR"}


def renewed(gate: Gateway, agent: Bearer, max_calls: int | None = None) -> Bearer:
    """The same agent with another lease."""
    budgets = {} if max_calls is None else {"budgets": {"max_calls": max_calls}}
    gate.paces.leases.wait()
    answer = gate.http.post("/v1/leases", json={"scopes": ["tools:call"], "dpop_jwk": agent.prover.jwk} | budgets)
    assert answer.status_code == 200, answer.text
    lease = answer.json()
    return replace(agent, token=lease["lease_jwt"], session_id=lease["session_id"])


def test_an_agent_polls_its_own_hold_after_its_lease_was_renewed(gate: Gateway, operator: Bearer) -> None:
    agent = gate.agent()
    hold = agent.execute("payment_transfer", PAYMENT)
    assert hold.status_code == 202, hold.text
    poll = f"/v1/approvals/{hold.json()['approval_id']}/poll"
    later = renewed(gate, agent)
    assert (later.session_id, later.token != agent.token) == (agent.session_id, True)
    assert later.get(poll).json()["state"] == "pending"
    again = later.execute("payment_transfer", PAYMENT)
    assert again.json()["approval_id"] == hold.json()["approval_id"], "the same call is the same hold"
    listed = operator.get("/v1/admin/sessions?limit=100").json()["sessions"]
    assert [one["session_id"] for one in listed].count(agent.session_id) == 1
    for other in (gate.agent(), renewed(gate, agent, max_calls=3)):
        assert other.session_id != agent.session_id
        assert other.get(poll).status_code == 403
    gate.child("notary").kill()
    assert renewed(gate, later).get(poll).json()["state"] == "pending"
    operator.post(f"/v1/admin/sessions/{agent.session_id}/revoke")
    assert renewed(gate, agent).session_id != agent.session_id
