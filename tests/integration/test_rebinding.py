"""A name that leads somewhere public when it is looked at, and somewhere private the next time: what was looked at is
what is connected to, and nothing else ever is. By the client socket of a production gateway, with a name server and a
network of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.manifests import PATIENT, REPOSITORY, example, write_manifests
from tests.support.processes import GATEWAY
from tests.support.production import Production, production
from tests.support.proxied import policy_for
from tests.support.rebinding import ARRIVED, MIXED, PRIVATE, PUBLIC, QUESTIONS, REBINDING


def can_have_a_network() -> bool:
    """Whether this process may give another one a network and mounts of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    command = ["unshare", "-m", "-n", "ip", "link", "set", "lo", "up"]
    return subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


pytestmark = pytest.mark.skipif(not can_have_a_network(), reason="needs root, ip, and namespaces of network and mounts")


@dataclass
class Stage:
    """A gateway, and what its name server and its upstreams have seen."""

    gate: Production
    folder: Path

    def questions(self, name: str) -> list[str]:
        """The answer to each question for a name."""
        lines = (self.folder / QUESTIONS).read_text().splitlines()
        return [line.partition(" ")[2] for line in lines if line.startswith(f"{name} ")]

    @property
    def arrived(self) -> list[str]:
        """The addresses that received requests."""
        return (self.folder / ARRIVED).read_text().split()


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Stage]:
    actions = [
        example(
            "http_fetch", action_id=name.partition(".")[0], **PATIENT,
            egress={"profile": "direct_allowlist", "allowed_domains": [name]},
            template={"url_template": f"http://{name}/{{+path}}"},
        )
        for name in (REBINDING, MIXED)
    ]  # fmt: skip
    write_manifests(tmp_path / "actions", *actions)
    policy = policy_for(tmp_path / "policy", "run", *(one["action_id"] for one in actions))
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30\n")
    script = tmp_path / "gateway-apart"
    network = f"ip link set lo up && ip address add {PUBLIC}/32 dev lo"
    program = f"cd {REPOSITORY} && exec {sys.executable} -m tests.support.rebinding {tmp_path} {GATEWAY}"
    inside = f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf && {network} && {program} "$@"'
    script.write_text(f"#!/bin/sh\nexec unshare -m -n sh -c '{inside}' gateway \"$@\"\n")
    script.chmod(0o755)
    top = f'manifests_dir = "{tmp_path / "actions"}"\npolicy_dir = "{policy}"\n'
    with production(tmp_path, top, program=str(script)) as gate:
        yield Stage(gate, tmp_path)


def test_a_name_is_looked_up_once_and_connected_to_where_it_led_then(at: Stage) -> None:
    agent = at.gate.agent()
    answer = agent.execute("rebinding", {"path": "a"})
    assert answer.status_code == 200, answer.text
    assert (at.questions(REBINDING), at.arrived) == ([PUBLIC], [PUBLIC]), "a second look would have led elsewhere"
    refused = agent.execute("rebinding", {"path": "a"})
    assert (refused.status_code, refused.json()) == (502, {"error": "action_execution_failed"})
    (event,) = at.gate.events(trace_id=refused.headers["x-trace-id"])
    assert event["reason"] == "host_io: denied: the domain leads to a private or reserved address"
    receipt = at.gate.operator().get(f"/v1/receipts/{event['receipt_id']}").json()
    assert (receipt["failure_class"], receipt["signature_status"]) == ("provider_error", "verified")
    assert (at.questions(REBINDING), at.arrived) == ([PUBLIC, PRIVATE], [PUBLIC]), "nobody private was connected to"
    for _ in range(3):
        assert agent.execute("mixed", {"path": "a"}).status_code == 200
    assert at.questions(MIXED) == [f"{PRIVATE} {PUBLIC}"] * 3
    assert at.arrived == [PUBLIC] * 4, "of several addresses only public ones are used"
