"""A systemd of its own for tests (tests/systemd/box.sh), and the gateway installed in it by contrib/systemd/install.sh.

The gateway's sockets and files are reached through the box's root as this machine sees it (`Box.path`); commands run in
the box's namespaces (`Box.run`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from tests.support.gateway import ANSWER_SECONDS, Gateway, wait_for

ROOT = Path(__file__).resolve().parents[2]
BOX = ROOT / "tests" / "systemd" / "box.sh"
SOURCE, PYTHON, INTERPRETER = "/opt/source", "/opt/python", "/opt/interpreter"
CLIENT, ADMIN = "/run/gateway/gate.sock", "/run/gateway/gate-admin.sock"
PUBLIC_URL = "https://gateway.example"
COMMAND_SECONDS = 240.0
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_WRAPPER = f"""#!/bin/sh
exec {PYTHON}/bin/python -I {SOURCE}/launch.py supervisor.cli "$@"
"""


@cache
def missing() -> str | None:
    """The reason why this machine can't run a box, or None."""
    if os.geteuid() != 0:
        return "booting a systemd needs root"
    needed = ("systemctl", "nsenter", "unshare", "setpriv", "pivot_root", "ip", "hostname", "runuser", "curl")
    if lacking := [name for name in needed if shutil.which(name) is None]:
        return f"there is no {', '.join(lacking)}"
    if not Path("/lib/systemd/systemd").exists():
        return "there is no /lib/systemd/systemd"
    if "overlay" not in Path("/proc/filesystems").read_text():
        return "this kernel has no overlayfs"
    roots = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
    if not any((one / "cgroup.procs").exists() and os.access(one, os.W_OK) for one in roots):
        return "there is no writable cgroup2"
    return None


@dataclass
class Box:
    """A running systemd. `pid` is its process as this machine sees it."""

    pid: int

    def path(self, inside: str) -> Path:
        """A path of the box, from here."""
        return Path(f"/proc/{self.pid}/root{inside}")

    def run(self, *command: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a command in the box."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-a", "env", "-i", "container=docker", _PATH, *command],
            capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}\n{self.journal_text()}"
        return done

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        """Start a command in the box and do not wait for it."""
        return subprocess.Popen(["nsenter", "-t", str(self.pid), "-a", *command], stdin=subprocess.DEVNULL)

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.run("systemctl", "show", "--value", "-p", name, unit).stdout.strip()

    def put(self, inside: str, content: str, mode: int = 0o644) -> None:
        """Write a file in the box."""
        file = self.path(inside)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(mode)

    def drop_in(self, name: str, lines: str) -> None:
        """Change the gateway's service."""
        self.put(f"/etc/systemd/system/gateway.service.d/{name}.conf", f"[Service]\n{lines}\n")
        self.run("systemctl", "daemon-reload")

    def journal(self, *matches: str, unit: str = "gateway.service") -> list[dict[str, Any]]:
        """Entries of the journal, as it has them."""
        self.run("journalctl", "--sync")
        told = self.run("journalctl", "-o", "json", "--no-pager", "-u", unit, *matches).stdout
        return [json.loads(line) for line in told.splitlines()]

    def journal_text(self) -> str:
        """The end of the log, for people."""
        command = ["nsenter", "-t", str(self.pid), "-a", "journalctl", "--no-pager", "-n", "60"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout

    def processes(self, unit: str) -> dict[int, str]:
        """Pid, as the box has it, and title of every process of a unit."""
        group = self.show(unit, "ControlGroup")
        titles: dict[int, str] = {}
        # Its processes may lie in control groups of their own below the unit's.
        listed = self.run(
            "find", f"/sys/fs/cgroup{group}", "-name", "cgroup.procs", "-exec", "cat", "{}", "+", check=False
        ).stdout  # fmt: skip
        for pid in map(int, listed.split() if group else ()):
            with suppress(OSError):  # it has ended meanwhile
                titles[pid] = self.path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0 ").decode()
        return titles


@contextmanager
def box() -> Iterator[Box]:
    """A box, until the block ends."""
    shell = subprocess.Popen(
        [str(BOX), f"{ROOT}:{SOURCE}", f"{sys.base_prefix}:{INTERPRETER}", f"{sys.prefix}/lib:{PYTHON}/lib"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert shell.stdin is not None
    assert shell.stdout is not None
    try:
        said = shell.stdout.readline().split()
        assert said[:1] == ["ready"], "the box did not boot"
        yield Box(int(said[1]))
    finally:
        shell.stdin.close()
        shell.stdout.close()
        shell.wait(60)


@dataclass
class Installed(Gateway):
    """The gateway in a box, as install.sh left it; its agent is this process's user."""

    box: Box | None = None
    admin: httpx.Client | None = None

    @property
    def operators(self) -> httpx.Client:
        """Where operators connect."""
        assert self.admin is not None
        return self.admin


@contextmanager
def installed(inside: Box) -> Iterator[Installed]:
    """Install the gateway in the box, as its documentation says; with one agent who may call text_digest and spin.
    The service is not started."""
    # This machine's Python may lie in a home, which the service does not see: it has the same one elsewhere.
    interpreter = f"{INTERPRETER}/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    inside.put(f"{PYTHON}/pyvenv.cfg", f"home = {INTERPRETER}/bin\ninclude-system-site-packages = false\n")
    inside.path(f"{PYTHON}/bin").mkdir()
    inside.path(f"{PYTHON}/bin/python").symlink_to(interpreter)
    inside.put("/etc/ld.so.conf.d/000-interpreter.conf", f"{INTERPRETER}/lib\n")
    inside.run("ldconfig")
    inside.put("/opt/action-gateway/bin/gateway", _WRAPPER, 0o755)
    with configured(inside, inside.run(f"{SOURCE}/contrib/systemd/install.sh", "ann").stdout) as gate:
        yield gate


@contextmanager
def configured(inside: Box, said: str) -> Iterator[Installed]:
    """The gateway that was configured in the box, by what that printed; with one agent who may call text_digest and
    spin."""
    key = re.search(r"^ +(key-ann-[0-9a-f]{32})$", said, re.MULTILINE)
    assert key is not None, said
    config = inside.path("/etc/gateway/gateway.toml")
    agent = f'[identity.peercred.principals.{os.geteuid()}]\nprincipal = "agent"\nscopes = ["tools:call"]\n'
    config.write_text(config.read_text() + f'\n{agent}owner = "team"\n')
    inside.put("/etc/gateway/actions/spin.yaml", (ROOT / "contrib/examples/actions/spin.yaml").read_text())
    policy = inside.path("/etc/gateway/policy/data.json")
    acl = {"agent": {"actions": ["text_digest", "spin"], "sinks": []}}
    data = json.loads(policy.read_text()) | {"acl": acl}
    policy.write_text(json.dumps(data))
    ready = {
        "public_base_url": PUBLIC_URL, "state_dir": str(inside.path("/var/lib/gateway")),
        "client_socket": str(inside.path(CLIENT)), "admin_socket": str(inside.path(ADMIN)),
        "operator": {"name": "ann", "key": key[1], "private_key_file": str(inside.path("/etc/gateway/operator.pem"))},
    }  # fmt: skip
    with over(str(ready["client_socket"])) as http, over(str(ready["admin_socket"])) as admin:
        nobody = subprocess.Popen(["true"], text=True)
        nobody.wait()
        yield Installed(nobody, ready, Path("/dev/null"), http, box=inside, admin=admin)


def over(path: str) -> httpx.Client:
    """A client on a Unix socket that connects anew for each request."""
    limits = httpx.Limits(max_keepalive_connections=0)
    transport = httpx.HTTPTransport(uds=path, verify=False, limits=limits)
    return httpx.Client(transport=transport, base_url="http://localhost", timeout=ANSWER_SECONDS)


def wait_state(inside: Box, unit: str, state: str) -> None:
    """Until a unit is in this ActiveState."""
    wait_for(lambda: inside.show(unit, "ActiveState") == state, f"{unit} to be {state}", COMMAND_SECONDS)
