"""Admin socket endpoints: metrics, status, drain, revocation, reload and receipt keys."""

from tests.conformance.deployment import Caller, Deployment
from tests.conformance.marks import row
from tests.conformance.shapes import seconds_of

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@row("admin-endpoints/metrics")
def test_metrics_are_openmetrics_text(operator: Caller) -> None:
    answer = operator.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == OPENMETRICS
    assert answer.text.endswith("# EOF\n")


@row("admin-endpoints/reload")
def test_a_reload_counts_the_actions(gate: Deployment, operator: Caller) -> None:
    answer = operator.post("/v1/admin/reload")
    assert answer.status_code == 200, answer.text
    report = answer.json()
    assert report["manifests_loaded"] == len(gate.client.get("/v1/actions").json())
    assert report["policy_reloaded"] is True
    assert seconds_of(report["reloaded_at"]) > 0


@row("admin-endpoints/receipt-keys")
def test_the_receipt_keys_are_public_keys(operator: Caller) -> None:
    answer = operator.get("/v1/receipt-keys")
    assert answer.status_code == 200
    for key in answer.json()["keys"]:
        assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
        assert {"kid", "x"} <= set(key)
        assert "d" not in key
    assert answer.json()["keys"]
