"""Hosts of a test's own: network namespaces on one bridge, made by iproute2, and gone at the end.

They share this machine's files, users and clock, and nothing of its network: what a process in one reaches is what the
bridge leads to.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

NET = "10.213.77"
"""It is visible only inside these namespaces."""
COMMAND_SECONDS = 60


@cache
def missing() -> str | None:
    """The reason why this machine can't make hosts, or None."""
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    if lacking := [name for name in ("ip", "nsenter", "setpriv", "unshare") if shutil.which(name) is None]:
        return f"there is no {', '.join(lacking)}"
    name = f"gwt{os.getpid()}-try"
    made = _ip("netns", "add", name)
    if made.returncode != 0:
        return f"no network namespace can be made: {made.stderr.strip()}"
    try:
        veth = _ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
        bridge = _ip("-n", name, "link", "add", "switch", "type", "bridge")
        return next((f"no link can be made: {one.stderr.strip()}" for one in (veth, bridge) if one.returncode), None)
    finally:
        _ip("netns", "delete", name)


@dataclass(frozen=True)
class Host:
    """One of them. `within` is the start of a command that is to run there."""

    name: str
    address: str
    link: str
    """Its end of the cable, as `Network.unplug` takes it."""

    @property
    def within(self) -> tuple[str, ...]:
        """Only the network is the host's own; the command becomes the process itself, so that its pid is known."""
        return "nsenter", f"--net=/var/run/netns/{self.name}", "--"

    def within_with(self, folder: Path, seen_as: Path) -> tuple[str, ...]:
        """The same, where a folder is seen at a place that each host has."""
        mounted = 'mount --bind "$0" "$1" && shift && exec "$@"'
        return *self.within, "unshare", "--mount", "sh", "-c", mounted, str(folder), str(seen_as)


@dataclass(frozen=True)
class Network:
    """Hosts that reach each other."""

    switch: str
    hosts: tuple[Host, ...]

    def unplug(self, host: Host) -> None:
        """Packets from and to this host are lost without notice."""
        _ip("-n", self.switch, "link", "set", host.link, "down", check=True)

    def plug(self, host: Host) -> None:
        """The cable is in again."""
        _ip("-n", self.switch, "link", "set", host.link, "up", check=True)


@contextmanager
def network(count: int) -> Iterator[Network]:
    """Make so many hosts, from 10.213.77.1 up, and remove them with the block."""
    top = f"gwt{os.getpid()}"
    with ExitStack() as stack:
        switch = _made(stack, f"{top}-switch")
        _ip("-n", switch, "link", "add", "switch", "type", "bridge", check=True)
        _ip("-n", switch, "link", "set", "switch", "up", check=True)
        yield Network(switch, tuple(_host(stack, switch, f"{top}-{number}", number) for number in range(1, count + 1)))


@contextmanager
def network_or_skip(count: int) -> Iterator[Network]:
    """So many hosts for tests. Where this machine can't make them the tests are skipped with the reason; in CI they
    fail."""
    if reason := missing():
        if os.environ.get("CI") == "true":
            pytest.fail(f"no hosts to test with: {reason}")
        pytest.skip(reason)
    with network(count) as made:
        yield made


def _made(stack: ExitStack, name: str) -> str:
    _ip("netns", "add", name, check=True)
    stack.callback(_ip, "netns", "delete", name)
    _ip("-n", name, "link", "set", "lo", "up", check=True)
    return name


def _host(stack: ExitStack, switch: str, name: str, number: int) -> Host:
    host = Host(_made(stack, name), f"{NET}.{number}", f"to{number}")
    _ip("-n", switch, "link", "add", host.link, "type", "veth", "peer", "name", "eth0", "netns", name, check=True)
    _ip("-n", switch, "link", "set", host.link, "master", "switch", "up", check=True)
    _ip("-n", name, "address", "add", f"{host.address}/24", "dev", "eth0", check=True)
    _ip("-n", name, "link", "set", "eth0", "up", check=True)
    return host


def _ip(*arguments: str, check: bool = False) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["ip", *arguments], capture_output=True, text=True, check=check, timeout=COMMAND_SECONDS,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
