"""Kept values as an auditor gets them: in a bundle, verified without the gateway, before and after they are erased."""

import json
from pathlib import Path

from tests.support.gatectl import Gatectl
from tests.support.gateway import config_for, gateway
from tests.support.manifests import patient
from tests.support.upstream import Upstream

TEXT = "Hildegard"
KEEPING = {"evidence": {"keep": ["/text"]}, "summary": "{text}"}


def test_a_bundle_shows_the_kept_values_and_later_that_they_were_erased(up: Upstream, tmp_path: Path) -> None:
    patient(tmp_path / "actions", text_digest=KEEPING)
    bundle = tmp_path / "bundle.json"
    with gateway(tmp_path, config_for(up.address, f'manifests_dir = "{tmp_path / "actions"}"')) as gate:
        (tmp_path / "ready.json").write_text(json.dumps(gate.ready))
        (tmp_path / "ready.json").chmod(0o600)
        gatectl, empty = Gatectl(tmp_path / "home"), Gatectl(tmp_path / "empty")
        gatectl.done("context", "from-ready", str(tmp_path / "ready.json"))
        key = gatectl.done("audit", "checkpoint", "--json").json["keys"][0]
        done = gate.agent().execute("text_digest", {"text": TEXT}).json()

        def verified() -> str:
            bundle.write_text(gatectl.done("receipts", "bundle", done["receipt_id"]).out)
            return str(empty.done("verify", str(bundle), "--origin-key", key).out)

        assert f'kept           /text: "{TEXT}"\n' in verified()
        whole = bundle.read_text()
        assert f'/text: "{TEXT}"' in gatectl.done("receipts", "show", done["receipt_id"], "--verify").out
        bundle.write_text(json.dumps(json.loads(whole) | {"kept": []}))
        ran = empty.here("verify", str(bundle), "--origin-key", key)
        assert (ran.code, "bundle_not_proven" in ran.err, "missing: " in ran.err) == (8, True, True)
        (event,) = gate.events(trace_id=done["trace_id"], event_type="ActionCall")
        gatectl.done("evidence", "erase", "--event", event["event_id"], "--reason", "asked for", "--yes")
        assert "kept           /text: erased\n" in verified()
        assert TEXT not in bundle.read_text()
        assert "/text: erased" in gatectl.done("receipts", "show", done["receipt_id"], "--verify").out
        bundle.write_text(whole)
        assert empty.here("verify", str(bundle), "--origin-key", key).code == 0, "an older bundle goes on to prove"
