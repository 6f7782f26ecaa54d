"""The summary of a call, from its manifest and its request to those who decide, and to its agent."""

from pathlib import Path

from ipc.kept_values import ERASED_SUMMARY
from tests.support.gateway import gateway
from tests.support.manifests import all_examples, open_policy


def test_a_held_call_is_listed_and_shown_by_the_summary_of_its_kept_values(tmp_path: Path) -> None:
    kept = {
        "evidence": {"keep": ["/amount_cents", "/currency"], "mask": ["/to"]}, "summary": "{amount_cents} {currency}",
    }  # fmt: skip
    manifests = all_examples(tmp_path / "actions", payment_transfer=kept)
    policy = open_policy(tmp_path / "policy")
    with gateway(tmp_path, f'manifests_dir = "{manifests}"\npolicy_dir = "{policy}"\n') as gate:
        body = {"to": "acct-7777", "amount_cents": 25000, "currency": "EUR"}
        agent = gate.agent()
        answer = agent.execute("payment_transfer", body)
        assert answer.status_code == 202, answer.text
        assert answer.json()["summary"] == agent.execute("payment_transfer", body).json()["summary"] == "25000 EUR"
        approval_id, operator = answer.json()["approval_id"], gate.operator()
        (listed,) = operator.get("/v1/approvals").json()["approvals"]
        shown = operator.get(f"/v1/approvals/{approval_id}").json()
        assert (listed["summary"], shown["summary"]) == ("25000 EUR", "25000 EUR")
        assert operator.post(f"/v1/approvals/{approval_id}/deny").status_code == 200
        assert operator.get("/v1/audit/summary").json()["sums"] == []


def test_an_agent_finds_its_calls_by_their_summaries_until_the_values_are_erased(tmp_path: Path) -> None:
    manifests = all_examples(
        tmp_path / "actions", text_digest={"evidence": {"keep": ["/text"]}, "summary": "of {text}"}
    )
    policy = open_policy(tmp_path / "policy")
    with gateway(tmp_path, f'manifests_dir = "{manifests}"\npolicy_dir = "{policy}"\n') as gate:
        agent, operator = gate.agent(), gate.operator()
        assert agent.execute("text_digest", {"text": "invoice 7"}).status_code == 200
        (call,) = agent.get("/v1/calls").json()["calls"]
        assert (call["state"], call["summary"]) == ("executed", "of invoice 7")
        (event,) = gate.events(event_type="ActionCall")
        asked = {"event_id": event["event_id"], "reason": "asked for"}
        assert operator.post("/v1/admin/evidence/erase", asked).json()["erased"] == 1
        (call,) = agent.get("/v1/calls").json()["calls"]
        assert call["summary"] == ERASED_SUMMARY
