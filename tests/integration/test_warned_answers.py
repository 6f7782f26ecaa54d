"""With `response_schema_enforcement = "warn"` an answer that breaks its schema goes out, and that shows everywhere."""

import json
from pathlib import Path

from tests.support.gateway import gateway, wait_for
from tests.support.manifests import PATIENT, example, write_manifests

WRONG = {"type": "object", "properties": {"sha256": {"type": "integer"}}}
LINE = "an answer breaks its response schema"
COUNTED = 'gate_response_schema_violations_total{action_id="text_digest"} 1.0'


def test_an_answer_that_breaks_its_schema_goes_out_and_is_counted_logged_and_in_the_event(tmp_path: Path) -> None:
    """`tests/integration/test_limits.py` has the answer that is refused."""
    manifest = example("text_digest", io={"response_schema": WRONG}, verifier_kind="unverifiable", **PATIENT)
    folder = write_manifests(tmp_path / "actions", manifest)
    with gateway(tmp_path, f'manifests_dir = "{folder}"\nresponse_schema_enforcement = "warn"\n') as gate:
        answer = gate.agent().execute("text_digest", {"text": "x"})
        assert answer.status_code == 200
        trace_id = answer.headers["x-trace-id"]
        (event,) = gate.events(trace_id=trace_id)
        assert (event["decision"], event["response_schema_violation"]) == ("allow", "/sha256: type")
        assert COUNTED in gate.operator().get("/metrics").text
        assert isinstance(answer.json()["output"]["sha256"], str)

        def said() -> list[str]:
            lines = [line for line in gate.log.read_text().rpartition("\n")[0].splitlines() if LINE in line]
            return [json.loads(line)["trace_id"] for line in lines]

        assert wait_for(said, "its line") == [trace_id]
