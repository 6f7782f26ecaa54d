"""The Debian package, as a release builds it, in a systemd of its own: installed, configured, upgraded, removed."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gateway import wait_for
from tests.support.systemd_box import (
    ADMIN,
    COMMAND_SECONDS,
    PUBLIC_URL,
    Box,
    Installed,
    box,
    configured,
    missing,
)

ROOT = Path(__file__).resolve().parents[2]
BUILD_SECONDS = 1200
SHARED, HOME = "/usr/share/action-gateway", "/usr/lib/action-gateway"
UNITS = ("gateway.socket", "gateway-admin.socket", "gateway.service")


def run(*command: str | Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of this tree. Its libraries come from the package index, as those of `make setup` do."""
    needed = ("dpkg-deb", "/usr/bin/python3.11")
    if reason := missing() or next((f"there is no {name}" for name in needed if not shutil.which(name)), None):
        pytest.skip(reason)
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("out")
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if not name.startswith("tests/") and (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    for project in (tree, tree / "sdk"):
        run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", out, project)
    run("bash", "scripts/deb.sh", sys.executable, tree, out, "0.1.0")
    (built,) = out.glob("action-gateway_0.1.0_*.deb")
    return built


@pytest.fixture(scope="module")
def newer(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same under a higher version."""
    folder, out = tmp_path_factory.mktemp("newer"), tmp_path_factory.mktemp("out") / "newer.deb"
    run("dpkg-deb", "-R", package, folder)
    control = folder / "DEBIAN" / "control"
    control.write_text(control.read_text().replace("Version: 0.1.0", "Version: 0.1.1"))
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, out)
    return out


@pytest.fixture(scope="module")
def inside(package: Path) -> Iterator[Box]:
    """A systemd that has only the package's files."""
    with box() as booted:
        yield booted


@pytest.fixture(scope="module")
def gate(inside: Box, package: Path) -> Iterator[Installed]:
    """The package, installed and configured as it says, and started."""
    assert f"next, as root: {SHARED}/configure.sh" in install(inside, package)
    with configured(inside, inside.run(f"{SHARED}/configure.sh", "ann").stdout) as gateway:
        checked = inside.run(f"{SHARED}/check.sh")
        assert "no problems" in checked.stdout
        inside.run("systemctl", "enable", "--now", *UNITS)
        yield gateway


def install(inside: Box, package: Path) -> str:
    shutil.copy(package, inside.path("/var/tmp/package.deb"))
    return inside.run("dpkg", "-i", "/var/tmp/package.deb").stdout


def test_an_installed_package_serves_with_debians_own_python(gate: Installed, inside: Box) -> None:
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    assert inside.run("gateway", "--version").stdout == "gateway 0.1.0\n"
    program = inside.path(f"/proc/{inside.show('gateway.service', 'MainPID')}/exe")
    assert os.readlink(program) == "/usr/bin/python3.11"


def test_an_installed_package_can_send_spans(inside: Box, gate: Installed) -> None:
    folder = "/var/lib/other"
    inside.run("gateway", "init", "--production", folder, "--operator", "ann", "--state-dir", f"{folder}/state")
    inside.run("mkdir", "-m", "0700", f"{folder}/state")
    with inside.path(f"{folder}/gateway.toml").open("a") as configuration:
        configuration.write('[telemetry.otlp]\nendpoint = "https://otlp.example"\n')
    assert "no problems" in inside.run("gateway", "check", "--config", f"{folder}/gateway.toml").stdout


def test_an_operator_decides_with_the_gatectl_of_the_package(gate: Installed, inside: Box) -> None:
    assert inside.run("gatectl", "--version").stdout == "0.1.0\n"
    inside.put("/etc/gateway/ann.key", gate.ready["operator"]["key"], 0o600)
    keys = ("--operator-key-file", "/etc/gateway/ann.key", "--private-key-file", "/etc/gateway/operator.pem")
    reached = ("--address", f"unix://{ADMIN}", "--public-base-url", PUBLIC_URL)
    status = json.loads(inside.run("gatectl", "status", "--json", *reached, *keys).stdout)
    assert status["status"] == "ok"


@pytest.mark.parametrize(
    ("program", "pages", "word", "whole"),
    [
        ("gateway", ("gateway", "gateway-run", "gateway-ledger", "gateway-edge"), "led", "ledger"),
        ("gatectl", ("gatectl", "gatectl-approvals", "gatectl-desk"), "appr", "approvals"),
    ],
)
def test_a_package_has_a_page_for_each_command_and_completes_them(
    gate: Installed, inside: Box, program: str, pages: tuple[str, ...], word: str, whole: str
) -> None:
    for page in pages:
        assert inside.run("man", "-w", page).stdout == f"/usr/share/man/man1/{page}.1.gz\n"
    completion = f"/usr/share/bash-completion/completions/{program}"
    asked = (
        f". {completion}; COMP_WORDS=({program} {word}); COMP_CWORD=1; "
        f'$(complete -p {program} | sed "s/.*-F //; s/ .*//") {program} {word}; echo "${{COMPREPLY[@]}}"'
    )
    assert inside.run("bash", "-c", asked).stdout == f"{whole}\n"


def test_a_process_that_ends_between_new_files_and_the_restart_brings_up_the_whole_gateway_anew(
    gate: Installed, inside: Box
) -> None:
    before = inside.show("gateway.service", "MainPID")
    (notary,) = [pid for pid, title in inside.processes("gateway.service").items() if title == "gateway: notary"]
    inside.run("dpkg", "--unpack", "/var/tmp/package.deb")
    # A spare front that was due meanwhile has the same effect; then this one has ended already.
    inside.run("kill", "-KILL", str(notary), check=False)
    wait_for(
        lambda: inside.show("gateway.service", "MainPID") not in (before, "0"), "systemd to start it", COMMAND_SECONDS
    )
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    assert [one for one in inside.journal() if "its files were replaced after its start" in one["MESSAGE"]]
    inside.run("dpkg", "--configure", "action-gateway")
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200


def test_an_upgrade_keeps_all_and_a_removal_keeps_evidence_and_keys(gate: Installed, inside: Box, newer: Path) -> None:
    before = inside.show("gateway.service", "MainPID")
    receipt = gate.agent().execute("text_digest", {"text": "x"}).json()["receipt_id"]
    configuration = inside.path("/etc/gateway/gateway.toml").read_text()
    assert "next, as root" not in install(inside, newer)
    assert inside.show("gateway.service", "MainPID") not in (before, "0")
    assert gate.agent().get(f"/v1/receipts/{receipt}").status_code == 200
    assert gate.agent().execute("text_digest", {"text": "x"}).status_code == 200
    inside.run("dpkg", "-r", "action-gateway")
    assert [inside.show(unit, "ActiveState") for unit in UNITS] == ["inactive"] * 3
    assert not inside.path(HOME).exists()
    said = inside.run("dpkg", "-P", "action-gateway").stdout
    assert "/var/lib/gateway stays" in said
    assert inside.path("/etc/gateway/gateway.toml").read_text() == configuration
    assert inside.path("/var/lib/gateway/ledger.sqlite3").exists()
    assert inside.run("dpkg", "-s", "action-gateway", check=False).returncode == 1
