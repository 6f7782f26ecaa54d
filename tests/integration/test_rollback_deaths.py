"""`gateway actions rollback` where no gateway runs, and one that is killed between its files, or between files and
reload: the manifest in force goes on, and the next start reads whole files.

All tests share two lives of a gateway. Each has an action of its own.
"""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.commands.inspect import file_changes
from tests.support.gateway import START_SECONDS, Gateway, gateway, wait_for
from tests.support.manifests import PROVIDERS, open_policy, put_module, trust
from tests.support.manifests_over_time import ChangingAction, command, digest, done, has_copies, named, write_action

KILLED = """
import os, signal, sys
from pathlib import Path
from supervisor.cli import main

def rename(path, target):
    if sys.argv[1] == "half":
        os.kill(os.getpid(), signal.SIGKILL)
    os.rename(path, target)
    if target.suffix == sys.argv[1]:
        os.kill(os.getpid(), signal.SIGKILL)

Path.rename = rename
sys.exit(main(["actions", "rollback", *sys.argv[2:]]))
"""
IN_FORCE = {
    "half": "1.1.0",  # a temporary file lies there
    ".wasm": "1.1.0",  # its module is trusted and there again
    ".yaml": "1.0.0",  # all files, and no reload
}
"""By the suffix of the last file that was replaced (`half`: none was), the version of the next start. The actions have
these names without the dot."""
STOPPED = "stopped"


def kill(action: ChangingAction, after: str) -> None:
    """Roll back, and die once the file with this suffix is replaced."""
    words = [after, action.name, *named(action.gate)]
    ended = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, timeout=START_SECONDS)
    assert ended.returncode == -signal.SIGKILL


def refuse(path: Path, _: bytes) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


@dataclass
class Lives:
    """A gateway in its second life, and what was so in the first one and between both. All is by action."""

    gate: Gateway
    digests: dict[str, dict[str, str]]
    """Version -> digest."""
    modules: dict[str, str]
    called: dict[str, str] = field(default_factory=dict)
    """The version of a call after the rollback was killed."""
    left: dict[str, str] = field(default_factory=dict)
    """The digest of the file that the first life left."""
    refused: tuple[int, str] = (0, "")
    """Exit code of a rollback that could not write, and the digest that it left."""
    told: str = ""
    """By the rollback while no gateway ran."""

    def action(self, name: str) -> ChangingAction:
        return ChangingAction(self.gate, self.gate.state.parent / "actions", name)


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    root: Path = tmp_path_factory.mktemp("deaths")
    folder, killed_after = root / "actions", {after.strip("."): after for after in IN_FORCE}
    names = [*killed_after, STOPPED]
    text = f'manifests_dir = "{folder}"\npolicy_dir = "{open_policy(root / "policy", *names)}"\nfront_processes = 2\n'
    data = (PROVIDERS / "text_digest.wasm").read_bytes() + b"\x00\x05\x04"
    modules = {name: put_module(folder, data + name[:4].encode()) for name in names}
    trust(folder, *modules.values())
    digests = {name: {"1.0.0": write_action(folder, name, provider_module_digest=modules[name])} for name in names}
    with gateway(root, text) as gate:
        one = Lives(gate, digests, modules)
        has_copies(gate, STOPPED)
        for name in names:
            digests[name]["1.1.0"] = write_action(folder, name, version="1.1.0")
            (folder / "modules" / f"{modules[name].removeprefix('sha256:')}.wasm").unlink()
        done(gate, "reload")
        for name, after in killed_after.items():
            kill(one.action(name), after)
            one.called[name] = one.action(name).called()["action_version"]
            one.left[name] = digest(one.action(name).place)
    words = ["actions", "rollback", STOPPED, "--to", "1.0.0"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_changes, "_put", refuse)
        one.refused = (command(gate, *words).returncode, digest(one.action(STOPPED).place))
    one.told = done(gate, *words)
    with gateway(root, text) as one.gate:
        yield one


@pytest.mark.parametrize(("after", "in_force"), IN_FORCE.items())
def test_a_rollback_that_is_killed_leaves_one_manifest_or_the_other_for_the_next_start(
    lives: Lives, after: str, in_force: str
) -> None:
    action = lives.action(after.strip("."))
    wanted = lives.digests[action.name][in_force]
    assert lives.called[action.name] == "1.1.0", "what is in force goes on"
    assert lives.left[action.name] == wanted
    assert action.called()["action_version"] == in_force
    assert action.rollbacks() == [], "the start's own event names the manifest"
    assert lives.gate.events(event_type="GatewayStarted", limit=1)[0]["change"]["manifests"][action.name] == wanted
    wait_for(lambda: action.history()[0]["digest"] == wanted, "the copies of the second start")
    if in_force == "1.1.0":
        done(lives.gate, "actions", "rollback", action.name, "--to", "1.0.0")
        assert action.called()["action_version"] == "1.0.0"
    written = (action.name, lives.modules[action.name].removeprefix("sha256:"))
    hidden = [one.name for one in action.folder.rglob(".*") if one.name.split(".")[1] in written]
    assert hidden == [], "an unfinished file is removed by the next rollback"


def test_without_a_running_gateway_a_rollback_leaves_its_event_for_the_next_start_and_none_if_it_can_not_write(
    lives: Lives,
) -> None:
    action = lives.action(STOPPED)
    first, second = lives.digests[STOPPED]["1.0.0"], lives.digests[STOPPED]["1.1.0"]
    assert lives.refused == (Exit.NO_PERMISSION, second)
    assert "No gateway runs: the next start puts it in force." in lives.told
    (event,) = action.rollbacks()
    assert (event["change"]["from"], event["change"]["to"]) == (second, first)
    assert lives.gate.events(event_type="GatewayStarted", limit=1)[0]["change"]["manifests"][STOPPED] == first
    assert action.called()["action_version"] == "1.0.0"
