"""Poll: approvals of one's own session."""

from tests.conformance.deployment import Deployment
from tests.conformance.marks import row


@row("poll/own-session", "other-errors/poll-403")
def test_the_session_of_the_lease_must_be_that_of_the_approval(gate: Deployment) -> None:
    holder, other = gate.agent(), gate.agent()
    approval_id = gate.held(holder)
    assert holder.get(f"/v1/approvals/{approval_id}/poll").status_code == 200
    assert other.get(f"/v1/approvals/{approval_id}/poll").status_code == 403
    again = gate.agent()
    again.prover = holder.prover  # the same key, and another lease
    assert gate.client.get(
        f"/v1/approvals/{approval_id}/poll", headers=again.headers("GET", f"/v1/approvals/{approval_id}/poll")
    ).status_code in (401, 403)
