"""Revocation epoch: what revoke-all does."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import is_integer
from tests.support.coded import Coded


@row(
    "epoch-moves/raises-by-one",
    "revocation-epoch/non-negative",
    "admin-endpoints/revoke-all",
    "admin-endpoints/epoch",
)
def test_revoke_all_raises_it_by_one(gate: Deployment) -> None:
    operator = gate.operator()
    before = operator.get("/v1/admin/epoch").json()["current_epoch"]
    answer = operator.post("/v1/admin/revoke-all")
    assert answer.json() == {"previous_epoch": before, "current_epoch": before + 1}
    assert is_integer(before)
    assert operator.get("/v1/admin/epoch").json()["current_epoch"] == before + 1


@row("epoch-moves/older-leases", "revocation-epoch/carried")
def test_older_leases_are_invalid_on_every_route_of_agents(gate: Deployment) -> None:
    agent = gate.agent()
    assert agent.epoch == gate.operator().get("/v1/admin/epoch").json()["current_epoch"]
    approval_id = gate.held(agent, body={"text": "before"})
    receipt_id = agent.execute("text_digest", {"text": "x"}).json()["receipt_id"]
    assert gate.operator().post("/v1/admin/revoke-all").status_code == 200
    for answer in (
        agent.execute("text_digest", {"text": "x"}),
        agent.get(f"/v1/approvals/{approval_id}/poll"),
        agent.get(f"/v1/receipts/{receipt_id}"),
    ):
        assert (answer.status_code, answer.json()) == (401, Coded("invalid_lease"))


@row("epoch-moves/older-grants")
def test_an_older_hold_is_not_executed_any_more(gate: Deployment) -> None:
    operator = gate.operator()
    approval_id = gate.held(gate.agent(), "held_file", {"path": "revoked.txt", "content": "x"})
    assert operator.post("/v1/admin/revoke-all").status_code == 200
    answer = operator.post(f"/v1/approvals/{approval_id}/approve")
    assert answer.status_code in (404, 409)
    assert not (gate.state / "files" / "revoked.txt").exists()


@row("epoch-moves/new-leases")
def test_a_new_lease_carries_the_new_epoch_and_works(gate: Deployment) -> None:
    current = gate.operator().post("/v1/admin/revoke-all").json()["current_epoch"]
    agent = gate.agent()
    assert agent.epoch == current
    assert agent.execute("text_digest", {"text": "x"}).status_code == 200
