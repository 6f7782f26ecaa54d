"""`gateway-edge.service` as a service manager runs it: a user of its own, hardened, before the gateway's own unit."""

import re
import subprocess
from pathlib import Path

from tests.support.certificates import made_certificate
from tests.support.gateway import wait_for
from tests.support.systemd_box import Box, Installed

UNIT = Path(__file__).resolve().parents[2] / "contrib" / "systemd" / "gateway-edge.service"
CONFIG = """\
listen = "127.0.0.1:8443"
public_base_url = "https://gate.example"
client_socket = "/run/gateway/gate.sock"
[tls]
certificate_file = "certificate.pem"
key_file = "key.pem"
"""
MOST_EXPOSED = 1.5


def test_the_edge_serves_tls_as_its_own_user(inside: Box, serving: Installed, tmp_path: Path) -> None:
    made_certificate(tmp_path, "127.0.0.1")
    inside.put("/etc/gateway-edge/edge.toml", CONFIG)
    for name in ("certificate.pem", "key.pem"):
        inside.put(f"/etc/gateway-edge/{name}", (tmp_path / name).read_text(), 0o640)
    inside.run("chgrp", "-R", "gateway-edge", "/etc/gateway-edge")
    inside.run("systemctl", "start", "gateway-edge.service")
    certificate = "/etc/gateway-edge/certificate.pem"
    ask = ("curl", "-s", "--cacert", certificate, "https://127.0.0.1:8443/healthz")
    said = wait_for(lambda: inside.run(*ask, check=False).stdout, "an answer by TLS")
    assert '"ok"' in said
    status = inside.run("cat", f"/proc/{inside.show('gateway-edge', 'MainPID')}/status").stdout
    own = inside.run("id", "-u", "gateway-edge").stdout.strip()
    assert re.findall(r"^Uid:\s+(\d+)", status, re.MULTILINE) == [own]
    assert own != "0"
    inside.run("systemctl", "stop", "gateway-edge.service")
    assert inside.show("gateway-edge", "Result") == "success"


def test_the_unit_of_the_edge_is_exposed_no_more_than_the_gateways_own(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text())
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    level = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert level is not None, said
    assert float(level[1]) <= MOST_EXPOSED
