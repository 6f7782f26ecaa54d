"""The messages to a service manager, over a real datagram socket."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.systemd.notify import Notifier

MAX_BYTES = 65536


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket of a service manager."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(60)
        yield sock


def notifier(manager: socket.socket) -> Notifier:
    return Notifier.of({"NOTIFY_SOCKET": manager.getsockname()})


def test_each_message_is_a_datagram_of_its_own(manager: socket.socket) -> None:
    told = notifier(manager)
    assert told.is_heard
    told.ready()
    told.stopping()
    told.beat()
    told.extend(2.5)
    heard = [manager.recv(MAX_BYTES) for _ in range(4)]
    assert heard == [b"READY=1", b"STOPPING=1", b"WATCHDOG=1", b"EXTEND_TIMEOUT_USEC=2500000"]


def test_a_reload_says_when_it_began_by_the_clock_that_systemd_compares_with(manager: socket.socket) -> None:
    before = time.monotonic_ns() // 1000
    notifier(manager).reloading()
    state, stamp = manager.recv(MAX_BYTES).decode().splitlines()
    assert state == "RELOADING=1"
    name, _, value = stamp.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(value) <= time.monotonic_ns() // 1000


def test_a_status_is_one_line_whatever_it_was(manager: socket.socket) -> None:
    notifier(manager).status("serving · 2 held\nREADY=1\tX")
    assert manager.recv(MAX_BYTES).decode() == "STATUS=serving · 2 held READY=1 X"


def test_a_manager_in_the_abstract_namespace_is_reached() -> None:
    name = f"gateway-test-{os.getpid()}-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        sock.settimeout(60)
        Notifier(f"@{name}").ready()
        assert sock.recv(MAX_BYTES) == b"READY=1"


def test_a_descriptor_to_keep_comes_along_with_its_name(manager: socket.socket) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as kept:
        notifier(manager).keep("gateway", kept.fileno())
        said, descriptors, _, _ = socket.recv_fds(manager, MAX_BYTES, 4)
        assert said.decode().splitlines() == ["FDSTORE=1", "FDNAME=gateway", "FDPOLL=0"]
        (descriptor,) = descriptors
        assert os.fstat(descriptor).st_ino == os.fstat(kept.fileno()).st_ino
        os.close(descriptor)


@pytest.mark.parametrize(
    "address", [None, "", "vsock:2:1", "relative", "/nowhere/at/all", "@nobody-listens", "/" + "x" * 200]
)
def test_a_missing_service_manager_is_no_error(address: str | None) -> None:
    told = Notifier(address)
    told.ready()
    told.status("serving")
    told.keep("gateway", 0)


def test_a_manager_that_does_not_read_delays_no_beat_and_ends_nothing(manager: socket.socket) -> None:
    told = notifier(manager)
    manager.setblocking(False)
    for _ in range(2000):
        told.beat()
    heard = 0
    while True:
        try:
            assert manager.recv(MAX_BYTES) == b"WATCHDOG=1"
        except BlockingIOError:
            break
        heard += 1
    assert 0 < heard < 2000
