"""A gateway whose standard error is a pipe that is not read: calls, status and the end of it wait for no reader."""

import os
import signal
import subprocess
from pathlib import Path

from tests.support.gateway import ANSWER_SECONDS, PROGRAM, STOP_SECONDS, gateway, wait_for
from tests.support.pace import Paces

LINES = 400
"""Each is written by one call; a pipe holds some 240."""


def test_a_log_that_is_not_read_stops_neither_calls_nor_the_end_and_what_is_missing_is_counted(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    behind = ("/bin/sh", "-c", f'exec "$0" "$@" 2>/proc/{os.getpid()}/fd/{writer}', *PROGRAM)
    try:
        with gateway(tmp_path, program=behind) as gate:
            agent, pace = gate.agent(), Paces.session()
            for _ in range(LINES):
                pace.wait()
                assert agent.execute("text_digest", {"text": "x"}).status_code == 200

            def said() -> str:
                asked = [*PROGRAM, "status", "--state-dir", str(gate.state)]
                return subprocess.run(
                    asked, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
                ).stdout  # fmt: skip

            wait_for(lambda: " lines were dropped" in said(), "a word on lines that are missing")
            assert said().startswith("serving")
            assert "gate_log_lines_dropped_total 0" not in gate.operator().get("/metrics").text
            gate.process.send_signal(signal.SIGTERM)
            assert gate.process.wait(STOP_SECONDS) == 0
    finally:
        os.close(reader)
        os.close(writer)
