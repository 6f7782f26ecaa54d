"""An exporter that can't serve: the gateway does all the same, and exports once it can."""

import os
import signal
from pathlib import Path

from ipc.process.roles import EXPORTER
from tests.support.gateway import gateway, wait_for
from tests.support.otlp_receiver import receiver

UNUSABLE, USABLE = "no header at all\n", "Authorization: Bearer of-the-collector\n"


def test_an_exporter_in_a_crash_loop_neither_stops_the_gateway_nor_its_start(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.touch(mode=0o600)
    headers.write_text(UNUSABLE)
    with receiver() as collector:
        config = f'[telemetry.otlp]\nendpoint = "{collector.endpoint}"\nheaders_file = "{headers}"\n'
        with gateway(tmp_path, config) as gate:
            agent = gate.agent()

            def is_looping() -> bool:
                return bool(gate.operator().get("/readyz").json()["status"] == "degraded")

            for _ in range(2):
                wait_for(is_looping, "the crash loop")
                fronts = [front.pid for front in gate.children("front")]
                wait_for(gate.is_ready, "readiness")
                assert agent.execute("text_digest", {"text": "x"}).status_code == 200
                headers.write_text(USABLE)
                answer = agent.execute("text_digest", {"text": "x"})
                assert collector.trace(answer.headers["x-trace-id"])
                wait_for(lambda: not is_looping(), "the end of the crash loop")
                assert [front.pid for front in gate.children("front")] == fronts
                headers.write_text(UNUSABLE)
                os.kill(gate.child(EXPORTER).pid, signal.SIGKILL)
