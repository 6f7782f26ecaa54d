"""An installation is one name among all installed packages, and a gateway that runs from there alone."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2

import pytest

from supervisor.commands.create.new_provider import files
from tests.support.gateway import Gateway, wait_for
from tests.support.packages import PACKAGES
from tests.support.processes import pids, started

ROOT = Path(__file__).resolve().parents[2]
BESIDES = {"launch.py", "docs/errors.md"}


def run(*command: str | Path, cwd: Path | str = "/") -> str:
    """Standard output of a command that has to succeed."""
    done = subprocess.run(
        [str(one) for one in command], cwd=cwd, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def listed() -> set[str]:
    """Files of the repository, from its root."""
    return set(run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, with what is here and without the network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in listed():
        if name.startswith((*(f"{folder}/" for folder in PACKAGES), "docs/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            copy2(ROOT / name, source / name)
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", out, source)
    (built,) = out.glob("*.whl")
    return built


@dataclass(frozen=True)
class Installed:
    """A fresh environment with the wheel; its dependencies come from this one, the checkout does not."""

    site: Path
    script: Path
    before: frozenset[str]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    venv = tmp_path_factory.mktemp("installed") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    (site,) = venv.glob("lib/python*/site-packages")
    # A folder that a .pth file names gives its packages; its own .pth files, the checkout's among them, are not read.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    before = frozenset(os.listdir(site))
    python = venv / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    return Installed(site, venv / "bin" / "gateway", before)


@pytest.fixture(scope="module")
def gate(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with started(tmp_path_factory.mktemp("gate"), program=str(installed.script)) as running:
        yield running


def test_a_wheel_has_the_folders_of_the_repository_but_the_demo_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
    wanted = {name for name in listed() if name.partition("/")[0] in PACKAGES} | BESIDES
    wanted = {name for name in wanted if not name.startswith("contrib/demo/")}  # it needs what development needs
    assert names == {f"action_gateway/{name}" for name in wanted if (ROOT / name).is_file()}


def test_an_installation_adds_one_name_and_one_script(installed: Installed) -> None:
    added = set(os.listdir(installed.site)) - installed.before
    assert {name for name in added if not name.endswith(".dist-info")} == {"action_gateway"}
    assert [name for name in os.listdir(installed.script.parent) if "gate" in name] == ["gateway"]
    python = installed.script.with_name("python")
    printed = run(python, "-c", f"import importlib.util as u; print([n for n in {PACKAGES} if u.find_spec(n)])")
    assert printed == "[]\n", "none of our folders is a module of everybody's, and the checkout is out of reach"
    printed = run(python, "-c", "import action_gateway.launch; print(action_gateway.launch.HERE)")
    assert printed == f"{installed.site / 'action_gateway'}\n"


def test_a_gateway_serves_from_there_with_every_process_and_stops(gate: Gateway) -> None:
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    wanted = {"front", "policy", "template", "worker compute", "worker http", "worker fs"}
    wait_for(lambda: wanted <= {name.rstrip(" 0123456789") for name in pids(gate)}, "every process, with its title")
    described = gate.http.get("/openapi.json").json()
    assert described["paths"] == json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    assert gate.stop() == 0


def test_a_provider_of_ones_own_begins_there_with_the_same_files(installed: Installed, tmp_path: Path) -> None:
    run(installed.script, "new", "provider", "greet", "--language", "zig", "--dir", tmp_path)
    made = tmp_path / "providers" / "greet"
    assert {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()} == {
        str(place) for place, _ in files("greet", "zig")
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("--version",),
        ("schema", "config"),
        ("schema", "manifest"),
        ("policy", "check", "{site}/action_gateway/contrib/policy"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_command_does_there_what_it_does_in_the_checkout(installed: Installed, arguments: tuple[str, ...]) -> None:
    own = Path(sys.executable).with_name("gateway")
    there, here = (
        run(script, *(one.format(site=installed.site) for one in arguments)) for script in (installed.script, own)
    )
    assert there == here
    assert there
