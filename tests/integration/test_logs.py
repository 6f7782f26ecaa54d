"""`log_level = "debug"` and `gateway logs`: what each process did for one call, and silence of it without that."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.support.gateway import PROGRAM, Gateway, gateway, wait_for
from tests.support.manifests import patient


def collected(gate: Gateway, trace_id: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [*PROGRAM, "logs", "--trace", trace_id, "--json", gate.log],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def processes(lines: list[dict[str, Any]]) -> set[str]:
    return {str(one["process"]).rstrip(" 0123456789") for one in lines}


def told_in(lines: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Process and message of each."""
    return [(str(one["process"]).rstrip(" 0123456789"), one["message"]) for one in lines]


def test_every_process_that_took_part_in_a_call_has_lines_with_its_trace(tmp_path: Path) -> None:
    with gateway(tmp_path, 'log_level = "debug"\n' + patient(tmp_path / "actions")) as gate:
        agent = gate.agent()
        answer = agent.execute("text_digest", {"text": "x"})
        trace_id = answer.json()["trace_id"]
        wanted = {"front", "policy", "notary", "worker compute"}
        order = [
            ("notary", "an intent is in the ledger"), ("worker compute", "a plan was run"),
            ("notary", "an event is in the ledger"),
        ]  # fmt: skip

        def is_whole() -> bool:
            lines = collected(gate, trace_id)
            return wanted <= processes(lines) and set(order) <= set(told_in(lines))

        wait_for(is_whole, "the lines of each process")
        lines = collected(gate, trace_id)
        assert {one["trace_id"] for one in lines} == {trace_id}
        told = told_in(lines)
        assert [one for one in told if one in order] == order
        # This process says its line after its answer: what others do upon that may stand before it.
        assert told.count(("policy", "a question was answered")) == 1
        secret_free = json.dumps(lines)
        assert agent.token not in secret_free
        assert '"x"' not in secret_free
        # The lines of the second call have its own trace; the policy process was not asked again.
        other = agent.execute("text_digest", {"text": "x"}).json()["trace_id"]
        wait_for(lambda: {"notary", "worker compute"} <= processes(collected(gate, other)), "its lines")
        assert not [one for one in collected(gate, trace_id) if other in json.dumps(one)]
        as_text = subprocess.run(
            [*PROGRAM, "logs", "--trace", trace_id, gate.log], capture_output=True, text=True, timeout=300, check=True
        ).stdout
        assert len(as_text.splitlines()) == len(collected(gate, trace_id))


def test_without_that_only_the_front_says_a_line_of_a_call(shared: Gateway) -> None:
    traces = [shared.agent().execute("text_digest", {"text": "x"}).json()["trace_id"] for _ in range(3)]
    wait_for(lambda: collected(shared, traces[-1]), "the line of the last call")
    assert [processes(collected(shared, trace_id)) for trace_id in traces] == [{"front"}] * 3
