"""What the service does: the steps of a call, as they are seen from outside."""

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import BOTH_MODES, row
from tests.conformance.shapes import is_id
from tests.support.coded import Coded

pytestmark = BOTH_MODES

BODY = {"text": "x"}


@row("pipeline/1-authenticated")
def test_authentication_comes_before_anything_else(gate: Deployment) -> None:
    for action in ("text_digest", "unknown", "forbidden_export", "nothing"):
        answer = gate.client.post(f"/v1/actions/{action}/execute", json=BODY)
        assert (answer.status_code, answer.json()) == (401, Coded("missing_auth_header"))


@row("pipeline/2-policy-allows")
def test_a_call_that_policy_allows_runs(gate: Deployment, agent: Caller) -> None:
    assert agent.execute("text_digest", BODY).status_code == 200
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    assert (event["decision"], event["policy_rule"]) == ("allow", "allow")
    assert event["policy_version"]


@row("pipeline/2-policy-denies")
def test_a_call_that_policy_denies_does_not_run(gate: Deployment) -> None:
    agent = gate.agent(max_calls=1)
    assert agent.execute("nobodys_file", {"path": "denied.by-policy", "content": "x"}).status_code == 403
    assert not (gate.state / "files" / "denied.by-policy").exists()
    assert agent.execute("text_digest", BODY).status_code == 200  # nothing was debited


@row("pipeline/3-budget")
def test_an_allowed_call_takes_one_of_the_budget(gate: Deployment) -> None:
    agent = gate.agent(max_calls=3)
    assert agent.execute("text_digest", BODY).status_code == 200
    event = gate.events(session_id=agent.session_id, event_type="ActionCall")[0]
    assert (event["budgets_before"], event["budgets_after"]) == ({"calls_remaining": 3}, {"calls_remaining": 2})


@row(
    "pipeline/2-policy-holds",
    "pipeline/4-held",
    "approval-states/pending-to-approved",
    *(f"client-endpoints/{name}" for name in ("execute-202", "poll")),
    *(f"approval/poll-{name}" for name in ("approval_id", "state")),
)
def test_a_held_call_runs_when_a_person_says_so(gate: Deployment, agent: Caller, operator: Caller) -> None:
    answer = agent.execute("held_file", {"path": "held.until", "content": "approved"})
    approval_id = answer.json()["approval_id"]
    assert (answer.status_code, is_id("apr_", approval_id)) == (202, True)
    polled = agent.get(f"/v1/approvals/{approval_id}/poll")
    assert polled.status_code == 200
    assert (polled.json()["approval_id"], polled.json()["state"]) == (approval_id, "pending")
    assert not (gate.state / "files" / "held.until").exists()
    assert operator.post(f"/v1/approvals/{approval_id}/approve").status_code == 200
    assert (gate.state / "files" / "held.until").read_text() == "approved"
    assert agent.get(f"/v1/approvals/{approval_id}/poll").json()["state"] == "approved"


@row("pipeline/5-limits")
def test_the_provider_runs_under_its_limits(gate: Deployment, agent: Caller) -> None:
    assert agent.execute("little_fuel", BODY).status_code == 502
    assert agent.execute("text_digest", BODY).status_code == 200


@row(
    "pipeline/6-evidence",
    *(f"execution-result/{name}" for name in ("trace_id", "grant_id", "receipt_id")),
    *(f"client-endpoints/{name}" for name in ("execute", "receipt")),
)
def test_a_call_leaves_a_signed_receipt_and_a_chained_event(gate: Deployment, agent: Caller, operator: Caller) -> None:
    answer = agent.execute("text_digest", BODY)
    assert answer.status_code == 200
    result = answer.json()
    assert result["output"]["bytes"] == 1
    assert is_id("rcpt_", result["receipt_id"])
    assert is_id("grant_", result["grant_id"])
    (event,) = gate.events(trace_id=result["trace_id"])
    got = agent.get(f"/v1/receipts/{result['receipt_id']}")
    assert got.status_code == 200
    receipt = got.json()
    assert receipt["receipt_id"] == event["receipt_id"] == result["receipt_id"]
    assert receipt["grant_id"] == event["grant_id"] == result["grant_id"]
    assert (receipt["provider_receipt"], receipt["signature_status"]) == (result["output"], "verified")
    assert event["prev_hash"]
    assert operator.get("/v1/audit/verify").json()["intact"] is True
