"""Kept values end to end: from a manifest to evidence, and out of every file of the state directory."""

from pathlib import Path

from gateway_client import verify_chain

from tests.support.gateway import Gateway, config_for, gateway, wait_for
from tests.support.manifests import patient
from tests.support.upstream import Upstream

WHO = "acct-of-hildegard"
PAYMENT = {"to": WHO, "amount_cents": 25000, "currency": "EUR"}
KEEPING = {"evidence": {"keep": ["/amount_cents", "/to"], "mask": ["/currency"]}, "summary": "{amount_cents} to {to}"}


def files_with_it(gate: Gateway) -> list[str]:
    files = [file for file in gate.state.rglob("*") if file.is_file()]
    return [file.name for file in files if WHO.encode() in file.read_bytes()]


def test_a_held_and_denied_payment_keeps_its_values_until_they_are_erased(up: Upstream, tmp_path: Path) -> None:
    patient(tmp_path / "actions", payment_transfer=KEEPING)
    with gateway(tmp_path, config_for(up.address, f'manifests_dir = "{tmp_path / "actions"}"')) as gate:
        agent, operator = gate.agent(), gate.operator()
        hold = agent.execute("payment_transfer", PAYMENT).json()
        events = gate.events(trace_id=hold["trace_id"])
        assert set(events[-1]["kept"]) == {"/amount_cents", "/to", "/currency"}
        assert events[-1]["summary_template"] == "{amount_cents} to {to}"
        named = {"event_id": events[-1]["event_id"], "reason": "asked for"}
        answer = operator.post("/v1/admin/evidence/erase", named)
        assert answer.json() == {"erased": 0, "waiting": 1, "sealed": [], "next": None}
        assert operator.post(f"/v1/approvals/{hold['approval_id']}/deny", {"reason": "no"}).status_code == 200
        assert set(gate.events(trace_id=hold["trace_id"])[-1]["kept"]) == {"/amount_cents", "/to", "/currency"}
        (shown,) = operator.get(f"/v1/audit/events?kept./to={WHO}&decision=deny").json()["events"]
        assert shown["kept_state"] == "whole"
        assert shown["kept_values"] == {"/amount_cents": 25000, "/to": WHO, "/currency": ""}
        assert operator.get("/v1/audit/events?kept./amount_cents=2.5e4").json()["count"] == 2
        assert operator.get("/v1/audit/events?kept.to=x").status_code == 400
        assert verify_chain(reversed(gate.events())).intact
        assert files_with_it(gate)
        answer = operator.post("/v1/admin/evidence/erase", named)
        assert answer.json() == {"erased": 6, "waiting": 0, "sealed": [], "next": None}
        wait_for(lambda: not files_with_it(gate), "the end of the write-ahead log")
        assert {one["kept_state"] for one in gate.events(trace_id=hold["trace_id"])} == {"erased"}
        assert gate.events(**{"kept./to": WHO}) == []
        assert verify_chain(reversed(gate.events())).intact
        (told,) = gate.events(event_type="EvidenceErased")
        assert (told["principal"], told["reason"], told["change"]["count"]) == ("operator:dev", "asked for", 6)
        assert operator.get("/v1/audit/verify").json()["intact"]


def test_an_erasure_that_names_no_call_is_refused(shared: Gateway) -> None:
    operator = shared.operator()
    refused = [
        {"reason": "x"}, {"event_id": "evt_1", "principal": "p", "reason": "x"},
        {"event_id": "evt_1", "before": "2026-01-01T00:00:00Z", "reason": "x"}, {"principal": "p"},
        {"principal": "p", "before": "soon", "reason": "x"},
    ]  # fmt: skip
    for body in refused:
        assert operator.post("/v1/admin/evidence/erase", body).status_code == 400, body
    answer = operator.post("/v1/admin/evidence/erase", {"event_id": "evt_none", "reason": "x"})
    assert (answer.status_code, answer.json()["error"]) == (404, "evidence_not_found")
