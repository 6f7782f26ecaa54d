"""Calls of actions that use values of their requests, beside the same action without: `python -m bench --features`.

All actions run in one gateway and send the same bytes. Ratios are those of one run.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bench.backends import Backends
from bench.generator import generator
from bench.report import figure, table
from bench.rounds import Sample, median, play, processes, ratio
from bench.stages import Scope, progress
from bench.subjects import Gate, gate

EXAMPLES: Final = Path(__file__).parents[1] / "contrib" / "examples"
BODY: Final = '{"text":"hello","amount_cents":5,"invoice":"in_7"}'
PLAIN: Final = "plain"
KEPT: Final = {
    "evidence": {"keep": ["/invoice", "/amount_cents", "/text"]},
    "summary": "{amount_cents} for {invoice}",
}
VALUES: Final = {"policy_input": ["/amount_cents", "/invoice"]}
ACTIONS: Final[dict[str, dict[str, Any]]] = {
    PLAIN: {}, "threshold": VALUES, "cap": VALUES, "kept": KEPT, "key": {}, "everything": VALUES | KEPT,
}  # fmt: skip
"""Action -> the members that its manifest has beside those of the plain one."""
WITH_THRESHOLD: Final = ("threshold", "everything")
WITH_CAP: Final = ("cap", "everything")
WITH_KEY: Final = ("key", "everything")


def measured(scope: Scope) -> dict[str, Any]:
    """The whole run, as it stands in the JSON."""
    levels = tuple(level for level in scope.levels if level in (1, 8, 32))
    with generator() as load, _gate() as running:

        def measure(name: str, level: int, number: int) -> Sample:
            progress(f"round {number + 1} of {scope.rounds}: {name}, {level} connections")
            path = f"/v1/actions/{name}/execute"
            return load.posts(running, path, BODY, level, scope.seconds, has_keys=name in WITH_KEY)

        samples = play(dict.fromkeys(ACTIONS, levels), levels, scope.rounds, measure)
    return {"rounds": scope.rounds, "seconds": scope.seconds, "levels": levels, "samples": samples}


def told(results: dict[str, Any]) -> str:
    """A table for people."""
    samples = results["samples"]
    rows = [["connections", "action", "calls/s", "÷ plain", "CPU ÷ plain", "p99 ÷ plain", "µs a call by process"]]
    for level in results["levels"]:
        for name in ACTIONS:
            spent = processes(samples, name, level)
            told_spent = ", ".join(f"{kind} {spent[kind]:.0f}" for kind in spent if spent[kind] >= 1)
            ratios = (ratio(samples, name, PLAIN, level, one) for one in ("per_second", "cpu_us_all", "p99_ms"))
            rate = median(samples, name, level, "per_second")
            rows.append([str(level), name, *map(figure, (rate, *ratios)), told_spent])
    return "\n".join(table(rows))


@contextmanager
def _gate() -> Iterator[Gate]:
    """A gateway with all the actions, a threshold and a cap that no call reaches."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as name:
        folder = Path(name)
        for part in ("actions", "policy"):
            (folder / part).mkdir()
        for action_id, more in ACTIONS.items():
            (folder / "actions" / f"{action_id}.yaml").write_text(_manifest(action_id, more))
        data = json.loads((EXAMPLES / "policy" / "data.json").read_text())
        data["acl"]["dev:anonymous"]["actions"] += [*ACTIONS]
        (folder / "policy" / "data.json").write_text(json.dumps(data))
        (folder / "policy" / "gateway.rego").write_text((EXAMPLES / "policy" / "gateway.rego").read_text())
        top = f'manifests_dir = "{folder}/actions"\npolicy_dir = "{folder}/policy"\n'
        with gate(folder, backends=Backends(top, "")) as running:
            amounts = {"pointer": "/amount_cents", "deny_above": 10**12}
            for action_id in WITH_THRESHOLD:
                running.operator.post("/v1/admin/policy/thresholds", {"action_id": action_id} | amounts)
            for action_id in WITH_CAP:
                cap = {"per": "principal", "window_seconds": 86_400}
                running.operator.post("/v1/admin/policy/caps", {"action_id": action_id} | amounts | cap)
            yield running


def _manifest(action_id: str, more: dict[str, Any]) -> str:
    """As JSON, which is YAML."""
    texts = {"type": "string", "maxLength": 100}
    properties = {"text": texts, "invoice": texts, "amount_cents": {"type": "integer"}}
    return json.dumps({
        "action_id": action_id, "version": "1.0.0", "provider_module_digest": "builtin:text_digest",
        "required_imports": [], "risk_level": "low", "declared_side_effects": [],
        "resource_limits": {"fuel": 300_000_000, "memory_mb": 64, "timeout_seconds": 5, "max_io_calls": 0},
        "io": {"request_schema": {"type": "object", "properties": properties, "additionalProperties": False}},
        "verifier_kind": "unverifiable",
    } | more)  # fmt: skip
