"""A front that stands still: `gateway status` says so, the supervisor replaces it, and SIGTERM ends the gateway all the
same."""

import os
import signal
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.cli import main as command_line
from tests.support.gateway import STOP_SECONDS, Gateway, gateway, wait_for
from tests.support.processes import is_running
from tests.support.supervised import told


def status(gate: Gateway) -> tuple[int, str]:
    """`gateway status`, without a process of its own."""
    with redirect_stdout(StringIO()) as said:
        code = command_line(["status", "--state-dir", str(gate.state)])
    return code, said.getvalue()


def test_a_front_that_stands_still_is_not_called_serving_is_replaced_and_does_not_keep_sigterm(tmp_path: Path) -> None:
    with gateway(tmp_path) as gate:
        assert status(gate)[0] == Exit.OK
        front = gate.child("front")
        os.kill(front.pid, signal.SIGSTOP)

        def is_stalled() -> bool:
            code, said = status(gate)
            return (code, said.startswith("stalled")) == (Exit.FAILED, True) and "no front answers" in said

        wait_for(is_stalled, "a status that says that no front answers")
        wait_for(lambda: told(gate.log.read_text(), "front 1 is killed: it said nothing for 12 s"), "its end")
        wait_for(lambda: not is_running(front.pid), "its connections to be cut")
        assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
        assert gate.child("front").pid != front.pid
        wait_for(lambda: status(gate)[0] == Exit.OK, "a status that is well again")
        os.kill(gate.child("front").pid, signal.SIGSTOP)
        gate.process.send_signal(signal.SIGTERM)
        assert gate.process.wait(STOP_SECONDS) == Exit.FAILED  # that front may have cut a call
