"""`mcp-bridge@.service` as a service manager runs it: under a user of its own, hardened, and reachable on loopback."""

import json
import re
import subprocess
from pathlib import Path

from tests.support.gateway import wait_for
from tests.support.systemd_box import PYTHON, SOURCE, Box, Installed

UNIT = Path(__file__).resolve().parents[2] / "contrib" / "systemd" / "mcp-bridge@.service"
ENVIRONMENT = f"""\
LISTEN=127.0.0.1:8811
COMMAND={PYTHON}/bin/python -I {SOURCE}/tests/support/stdio_mcp_server.py
"""
MOST_EXPOSED = 1.5
_INITIALIZE = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
)


def test_an_instance_serves_its_server_as_a_user_without_rights(inside: Box, gate: Installed) -> None:
    inside.put("/etc/systemd/system/mcp-bridge@.service", UNIT.read_text())
    inside.put("/etc/gateway/mcp-bridge/sums.env", ENVIRONMENT)
    inside.run("systemctl", "daemon-reload")
    inside.run("systemctl", "start", "mcp-bridge@sums.service")
    ask = ("curl", "-s", "-H", "Content-Type: application/json", "-d", _INITIALIZE, "http://127.0.0.1:8811/mcp")
    said = wait_for(lambda: inside.run(*ask, check=False).stdout, "an answer")
    assert json.loads(said)["result"]["serverInfo"]["name"] == "stdio-server"
    pid = inside.show("mcp-bridge@sums", "MainPID")
    status = inside.run("cat", f"/proc/{pid}/status").stdout
    uid = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    assert uid is not None
    assert int(uid[1]) != 0
    inside.run("systemctl", "stop", "mcp-bridge@sums.service")
    assert inside.show("mcp-bridge@sums", "Result") == "success"


def test_the_unit_is_exposed_no_more_than_the_gateways_own(tmp_path: Path) -> None:
    unit = tmp_path / "mcp-bridge@sums.service"
    unit.write_text(UNIT.read_text())
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert level is not None, said
    assert float(level[1]) <= MOST_EXPOSED
