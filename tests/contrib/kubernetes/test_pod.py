"""The pod of contrib/kubernetes/sidecar, played: files of ConfigMaps and Secrets are links that are swapped, the root
is read-only, each container has its user and no capability."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support.gateway import START_SECONDS, STOP_SECONDS, wait_for
from tests.support.key_files import PURPOSES, keys_command
from tests.support.manifests import REPOSITORY
from tests.support.pod_contents import ACTION, PUBLIC_URL, allow, contents, made, map_agent, pod_of
from tests.support.pods import Pod

AGENT = 20001
SOCKET = "/run/gateway/client/gate.sock"
CALL = f"""
import sys
from gateway_client import Address, AgentClient, GatewayError
with AgentClient(Address.parse("unix://{SOCKET}", public_base_url="{PUBLIC_URL}")) as agent:
    try:
        print("executed", agent.execute(sys.argv[1], {{"text": "a"}}).receipt_id)
    except GatewayError as error:
        print(error.code)
"""


@pytest.fixture(scope="module")
def etc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the user of the cluster keeps. Playing a pod needs root; CI has it."""
    if os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("a pod is played by root, and this is not")
        pytest.skip("a pod is played by root: its containers have users of their own")
    if lacking := [name for name in ("setpriv", "unshare") if shutil.which(name) is None]:
        pytest.skip(f"there is no {', '.join(lacking)}")
    folder = made(tmp_path_factory.mktemp("user") / "etc")
    map_agent(folder, AGENT)
    allow(folder, ACTION)
    return folder


@pytest.fixture(scope="module")
def pod(etc: Path, tmp_path_factory: pytest.TempPathFactory) -> Pod:
    return Pod(pod_of("sidecar"), contents(etc), tmp_path_factory.mktemp("pod"))


@pytest.fixture(scope="module")
def served(pod: Pod) -> Iterator[Pod]:
    """The pod with its gateway, as soon as the startup probe is content."""
    with pod.running("gateway") as process:

        def is_ready() -> bool:
            assert process.poll() is None, pod.log("gateway").read_text()
            return probe(pod, "startupProbe").returncode == 0

        wait_for(is_ready, "the startup probe", START_SECONDS)
        yield pod
        process.terminate()
        assert process.wait(STOP_SECONDS) == Exit.OK


def probe(pod: Pod, name: str) -> "subprocess.CompletedProcess[str]":
    return pod.run("gateway", *pod.container("gateway")[name]["exec"]["command"])


def called(pod: Pod, action: str = ACTION) -> str:
    """The outcome of the agent's call: `executed`, or the code of the refusal."""
    done = pod.run("agent", sys.executable, "-c", CALL, action)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def reload(pod: Pod) -> None:
    """Put in force all that is mounted."""
    done = pod.run("gateway", "gateway", "reload", "--config", "/etc/gateway/config/gateway.toml")
    assert done.returncode == 0, done.stdout + done.stderr


def swap(pod: Pod, etc: Path, name: str) -> None:
    """Put a ConfigMap or Secret in force as it is now."""
    pod.contents = contents(etc)
    (volume,) = [one for one in pod.spec["volumes"] if one["name"] == name]
    pod.fill(volume)


def test_the_doctor_gets_every_wall_in_its_container(pod: Pod) -> None:
    done = pod.run("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "worker http     user namespace     ok" in done.stdout


@pytest.mark.parametrize("name", ["gateway", "agent"])
def test_a_container_writes_into_its_volumes_alone(pod: Pod, name: str) -> None:
    tried = (
        "for one in / /etc /var/lib /etc/gateway/policy /etc/gateway-private/keys; do touch $one/x && echo $one; done"
    )
    done = pod.run(name, "sh", "-c", f"{tried}; grep -E '^(Cap|NoNew)' /proc/self/status")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert dict(lines) == {
        "CapInh:": "0" * 16, "CapPrm:": "0" * 16, "CapEff:": "0" * 16, "CapBnd:": "0" * 16, "CapAmb:": "0" * 16,
        "NoNewPrivs:": "1",
    }  # fmt: skip


def test_the_agent_is_known_by_its_user_and_its_call_is_executed(served: Pod) -> None:
    assert called(served) == "executed"
    for name in ("readinessProbe", "livenessProbe"):
        assert probe(served, name).returncode == 0
    assert "beside ledger or keys" not in served.log("gateway").read_text(), "the front may look at each folder anew"


def test_the_agent_can_not_replace_the_socket_and_sees_no_other(served: Pod) -> None:
    done = served.run(
        "agent", "sh", "-c", f"rm -f {SOCKET}; ln -s /tmp /run/gateway/client/x; ls /run/gateway/*; id -G"
    )
    assert "Read-only file system" in done.stderr
    assert done.stdout.split() == ["gate.sock", "20001", "10001"]


def test_a_swapped_policy_is_in_force_after_a_reload(served: Pod, etc: Path) -> None:
    for actions, outcome in (((), "policy_denied"), ((ACTION,), "executed")):
        allow(etc, *actions)
        swap(served, etc, "policy")
        reload(served)
        assert called(served) == outcome


def test_a_module_of_the_user_is_run_from_a_swapped_config_map(served: Pod, etc: Path) -> None:
    module = (REPOSITORY / "workers" / "providers" / "text_digest.wasm").read_bytes()
    digest, actions = hashlib.sha256(module).hexdigest(), etc / "actions"
    manifest = (actions / "text_digest.yaml").read_text()
    own = manifest.replace("builtin:text_digest", f"sha256:{digest}").replace(f"action_id: {ACTION}", "action_id: own")
    (actions / "own.yaml").write_text(own)
    (actions / f"{digest}.wasm").write_bytes(module)
    (actions / "trusted_modules.yaml").write_text(f'digests: {{"sha256:{digest}": the user}}\n')
    allow(etc, ACTION, "own")
    for name in ("actions", "policy"):
        swap(served, etc, name)
    reload(served)
    assert called(served, "own") == "executed"


def test_swapped_keys_of_every_purpose_are_followed(served: Pod, etc: Path) -> None:
    new: list[str] = []
    for purpose in PURPOSES:
        done = keys_command("rotate", "--purpose", purpose, "--config", etc / "gateway.toml")
        assert done.returncode == 0, done.stderr
        new += re.findall(r"the next key is ([\w-]+),", done.stdout)
    swap(served, etc, "keys")
    assert len(new) == len(PURPOSES)

    def missing() -> list[str]:
        log = served.log("gateway").read_text()
        return [key for key in new if key not in log]

    wait_for(lambda: not missing(), "the gateway to follow the key of each purpose", 60)
    assert called(served) == "executed"
