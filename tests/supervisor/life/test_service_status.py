"""The messages of a whole supervisor to a service manager, from its start to its end."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from tests.support.supervised import Running, Start, wait_until

WATCHDOG_SECONDS, LONG_WATCHDOG_SECONDS = 2, 16


class Manager:
    """A service manager that collects the messages."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.heard: list[str] = []
        self.environ = {"NOTIFY_SOCKET": sock.getsockname(), "WATCHDOG_USEC": str(WATCHDOG_SECONDS * 1_000_000)}

    def take(self) -> list[str]:
        """All that came so far, a line each."""
        while True:
            try:
                self.heard += self.sock.recv(65536).decode().splitlines()
            except BlockingIOError:
                return self.heard

    def states(self) -> list[str]:
        """The messages without heartbeats, statuses and times."""
        return [line for line in self.take() if line.startswith(("READY", "STOPPING", "RELOADING"))]

    def beats(self) -> int:
        return self.take().count("WATCHDOG=1")

    def statuses(self) -> list[str]:
        return [line.removeprefix("STATUS=") for line in self.take() if line.startswith("STATUS=")]


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        yield Manager(sock)


@pytest.fixture
def serving(start: Start, manager: Manager) -> Running:
    gateway = start(environ=manager.environ, waits=False)
    wait_ready(gateway, manager)
    return gateway


def wait_ready(gateway: Running, manager: Manager) -> None:
    """Wait until the supervisor serves. The manager reads its messages meanwhile, because its socket holds only ten."""
    wait_until(manager.states)
    gateway.wait_ready()


def test_it_is_ready_once_it_serves_and_stopping_before_it_leaves(serving: Running, manager: Manager) -> None:
    assert manager.states() == ["READY=1"]
    assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in manager.take()), "while it started"
    wait_until(lambda: any(line.startswith("serving") for line in manager.statuses()))
    serving.signal(signal.SIGTERM)
    assert serving.wait() == Exit.OK
    assert manager.states() == ["READY=1", "STOPPING=1"]


def test_a_gateway_that_never_serves_is_never_ready(start: Start, manager: Manager) -> None:
    gateway = start(environ=manager.environ, front={"exit_at_start": int(Exit.CONFIG)}, waits=False)
    assert gateway.wait() == Exit.CONFIG
    assert "READY=1" not in manager.states()


def test_a_drain_tells_what_is_left_and_asks_for_time(serving: Running, manager: Manager) -> None:
    serving.ask(do="busy", in_flight=2)
    serving.signal(signal.SIGTERM)
    wait_until(lambda: any(line.startswith("draining · 2 in flight · oldest") for line in manager.statuses()))
    before = len([line for line in manager.take() if line.startswith("EXTEND_TIMEOUT_USEC=")])
    wait_until(lambda: len([one for one in manager.take() if one.startswith("EXTEND_TIMEOUT_USEC=")]) > before)
    assert any(line.endswith(" s left") for line in manager.statuses())
    serving.ask(do="busy", in_flight=0)
    assert serving.wait() == Exit.OK


@pytest.mark.parametrize("error", [None, "the policy is broken"])
def test_a_reload_is_reported_from_beginning_to_end_with_any_outcome(
    serving: Running, manager: Manager, error: str | None
) -> None:
    serving.ask(do="set", values={"reload_error": error})
    serving.signal(signal.SIGHUP)
    wait_until(lambda: len(manager.states()) >= 3)
    assert manager.states() == ["READY=1", "RELOADING=1", "READY=1"]
    assert any(line.startswith("MONOTONIC_USEC=") for line in manager.take())
    has_failed = any("last reload failed" in line for line in manager.statuses())
    assert has_failed is False or error is not None


@pytest.mark.parametrize("name", ["notary", "template"])
def test_nothing_is_fed_while_one_that_every_call_needs_is_stopped(
    serving: Running, manager: Manager, name: str
) -> None:
    wait_until(lambda: manager.beats() >= 2)
    pid = serving.whole_family()[name]
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: serving.told(f"{name} does not answer: the watchdog is not fed"))
    before = manager.beats()
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: serving.told(f"{name} answers again"))
    wait_until(lambda: manager.beats() > before)


def test_nothing_is_fed_while_a_front_that_served_says_nothing(serving: Running, manager: Manager) -> None:
    serving.ask(do="busy", in_flight=1)
    wait_until(lambda: serving.told("front 1 does not answer: the watchdog is not fed"))
    before = manager.beats()

    def is_fed() -> bool:
        serving.ask(do="busy", in_flight=1)  # again and again, as a real front says how it is
        return bool(serving.told("front 1 answers again")) and manager.beats() > before

    wait_until(is_fed)


def test_a_process_that_is_replaced_does_not_starve_the_watchdog(start: Start, manager: Manager) -> None:
    # Long enough for the next notary to answer on a machine that stood still for some seconds.
    gateway = start(environ=manager.environ | {"WATCHDOG_USEC": str(LONG_WATCHDOG_SECONDS * 1_000_000)}, waits=False)
    wait_ready(gateway, manager)
    before = gateway.whole_family()["notary"]
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: gateway.family().get("notary") not in (before, None))
    count = manager.beats()
    wait_until(lambda: manager.beats() >= count + 2)  # the second one comes after a debt of the first would have told
    assert not [line for line in gateway.log().splitlines() if "notary does not answer" in line]


def test_sockets_are_kept_where_the_manager_keeps_descriptors_and_their_files_stay(
    start: Start, manager: Manager
) -> None:
    gateway = start(environ=manager.environ | {"FDSTORE": "4"}, waits=False)
    wait_ready(gateway, manager)
    assert [line for line in manager.take() if line.startswith("FDNAME")] == ["FDNAME=gateway", "FDNAME=gateway-admin"]
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == Exit.OK
    assert Path(gateway.settings.listen_uds_path).is_socket()
