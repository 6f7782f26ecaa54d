"""With `response_schema_enforcement = "warn"` an answer that breaks its schema goes out, and that shows everywhere."""

import json
from pathlib import Path

import pytest

from tests.support.gateway import gateway, wait_for
from tests.support.manifests import PATIENT, example, write_manifests

WRONG = {"type": "object", "properties": {"sha256": {"type": "integer"}}}
LINE = "an answer breaks its response schema"
COUNTED = 'gate_response_schema_violations_total{action_id="text_digest"} 1.0'


@pytest.mark.parametrize("is_lax", [True, False], ids=["warn", "deny"])
def test_a_violation_is_counted_logged_and_in_the_event_and_goes_out_only_where_it_warns(
    tmp_path: Path, is_lax: bool
) -> None:
    manifest = example("text_digest", io={"response_schema": WRONG}, verifier_kind="unverifiable", **PATIENT)
    folder = write_manifests(tmp_path / "actions", manifest)
    mode = "warn" if is_lax else "deny"
    with gateway(tmp_path, f'manifests_dir = "{folder}"\nresponse_schema_enforcement = "{mode}"\n') as gate:
        answer = gate.agent().execute("text_digest", {"text": "x"})
        assert answer.status_code == (200 if is_lax else 502)
        trace_id = answer.headers["x-trace-id"]
        (event,) = gate.events(trace_id=trace_id)
        assert event["decision"] == ("allow" if is_lax else "error")
        assert event.get("response_schema_violation") == ("/sha256: type" if is_lax else None)
        assert COUNTED in gate.operator().get("/metrics").text
        if not is_lax:
            assert answer.headers["x-receipt-id"] == event["receipt_id"]
            return
        assert isinstance(answer.json()["output"]["sha256"], str)

        def said() -> list[str]:
            lines = [line for line in gate.log.read_text().rpartition("\n")[0].splitlines() if LINE in line]
            return [json.loads(line)["trace_id"] for line in lines]

        assert wait_for(said, "its line") == [trace_id]
