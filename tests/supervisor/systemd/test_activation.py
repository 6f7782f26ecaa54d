"""Sockets that a service manager hands over: taken by their names, and refused when they are not what settings name."""

import fcntl
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ipc.process.exits import Exit
from ipc.settings import MetricsSettings, Settings
from supervisor.systemd.activation import KINDS

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import msgspec
from ipc.settings import Settings
from supervisor.systemd.activation import activated
from supervisor.refusal import Refused
settings = msgspec.json.decode(sys.argv[2], type=Settings)
environ = dict(os.environ)
if environ.get("LISTEN_PID") == "own":
    environ["LISTEN_PID"] = str(os.getpid())
try:
    taken = activated(settings, environ)
except Refused as refused:
    print(refused.code, refused.sentence)
else:
    for one in taken:
        print(one.kind, one.address, one.stays_open, one.inode, os.get_inheritable(one.sock.fileno()))
        one.close()
"""


Listening = Callable[..., socket.socket]


def start(settings: Settings, sockets: list[socket.socket], names: str, pid: str = "own") -> str:
    """A process that is handed these sockets as descriptors 3 and on; what it says."""
    numbers: list[int] = []
    try:
        for sock in sockets:
            numbers.append(fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD_CLOEXEC, 100))
        script = "".join(f"exec {3 + index}<&{number} {number}<&-;" for index, number in enumerate(numbers))
        done = subprocess.run(
            ["bash", "-c", f'{script} exec "$@"', "_", sys.executable, "-c", PROGRAM, str(ROOT),
             msgspec.json.encode(settings).decode()],
            pass_fds=numbers, capture_output=True, text=True, timeout=120, check=False,
            env=os.environ | {"LISTEN_PID": pid, "LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": names},
        )  # fmt: skip
    finally:
        for number in numbers:
            os.close(number)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def settings_in(folder: Path, http: str | None = None, metrics: MetricsSettings | None = None) -> Settings:
    return Settings(
        str(folder), "https://gateway.example", listen_uds_path=str(folder / "gate.sock"),
        listen_admin_uds_path=str(folder / "admin.sock"), listen_http_addr=http, metrics=metrics or MetricsSettings(),
    )  # fmt: skip


@pytest.fixture
def sockets() -> Iterator[Listening]:
    """A way to get listening sockets: Listening, closed at the end."""
    made: list[socket.socket] = []

    def listening(address: Any, family: int = socket.AF_UNIX, kind: int = socket.SOCK_STREAM) -> socket.socket:
        sock = socket.socket(family, kind)
        made.append(sock)
        sock.bind(address)
        if kind == socket.SOCK_STREAM:
            sock.listen()
        return sock

    yield listening
    for sock in made:
        sock.close()


def test_each_becomes_the_listener_that_its_name_says_and_is_never_unlinked(tmp_path: Path, sockets: Listening) -> None:
    tcp = sockets(("127.0.0.1", 0), socket.AF_INET)
    address = f"127.0.0.1:{tcp.getsockname()[1]}"
    handed = [tcp, sockets(str(tmp_path / "admin.sock")), sockets(str(tmp_path / "gate.sock"))]
    said = start(settings_in(tmp_path, address), handed, "gateway-http:gateway-admin.socket:gateway")
    assert said.splitlines() == [
        f"merged {address} True None False",
        f"admin {tmp_path / 'admin.sock'} True None False",
        f"client {tmp_path / 'gate.sock'} True None False",
    ]
    assert (tmp_path / "gate.sock").is_socket()


@pytest.mark.parametrize("pid", ["1", "", "x"])
def test_sockets_for_another_process_are_left_alone(tmp_path: Path, sockets: Listening, pid: str) -> None:
    assert start(settings_in(tmp_path), [sockets(str(tmp_path / "gate.sock"))], "gateway", pid) == ""


@pytest.mark.parametrize(
    ("name", "where", "why"),
    [
        ("other", "gate.sock", r'socket "other" was handed over, and no setting .* Use FileDescriptorName='),
        ("", "gate.sock", r'socket "" was handed over, and no setting'),
        ("gateway", "elsewhere.sock", r'"gateway" listens on .*elsewhere.sock, and listen_uds_path = ".*gate.sock"'),
        ("gateway-admin", "gate.sock", r'"gateway-admin" listens on .*gate.sock, and listen_admin_uds_path'),
        ("gateway-http", "gate.sock", r"and listen_http_addr is not set"),
        ("gateway-metrics", "gate.sock", r"and metrics.listen_uds_path is not set"),
    ],
)
def test_a_socket_that_no_setting_names_is_a_start_error_with_its_mend(
    tmp_path: Path,
    sockets: Listening,
    name: str,
    where: str,
    why: str,
) -> None:
    said = start(settings_in(tmp_path), [sockets(str(tmp_path / where))], name)
    assert re.match(rf"{int(Exit.CONFIG)} the .*{why}", said), said


def test_one_name_for_two_sockets_is_refused(tmp_path: Path, sockets: Listening) -> None:
    one = sockets(str(tmp_path / "gate.sock"))
    assert "handed over twice" in start(settings_in(tmp_path), [one, one], "gateway:gateway")


def test_a_socket_that_does_not_listen_or_is_no_stream_is_refused(tmp_path: Path, sockets: Listening) -> None:
    datagrams = sockets(str(tmp_path / "gate.sock"), kind=socket.SOCK_DGRAM)
    said = start(settings_in(tmp_path), [datagrams], "gateway")
    assert "is no listening stream socket. Use ListenStream= and Accept=no." in said


def test_a_socket_without_its_file_is_refused(tmp_path: Path, sockets: Listening) -> None:
    handed = sockets(str(tmp_path / "gate.sock"))
    (tmp_path / "gate.sock").unlink()
    assert "its file" in start(settings_in(tmp_path), [handed], "gateway")


def test_the_socket_for_metrics_is_taken_by_path_and_by_address(tmp_path: Path, sockets: Listening) -> None:
    file = str(tmp_path / "metrics.sock")
    by_path = MetricsSettings(listen_uds_path=file)
    said = start(settings_in(tmp_path, metrics=by_path), [sockets(file)], "gateway-metrics")
    assert said == f"metrics {file} True None False"
    tcp = sockets(("127.0.0.1", 0), socket.AF_INET)
    address = f"127.0.0.1:{tcp.getsockname()[1]}"
    said = start(settings_in(tmp_path, metrics=MetricsSettings(listen=address)), [tcp], "gateway-metrics.socket")
    assert said == f"metrics {address} True None False"
    elsewhere = start(settings_in(tmp_path, metrics=MetricsSettings(listen="127.0.0.1:1")), [tcp], "gateway-metrics")
    assert f'listens on {address}, and metrics.listen = "127.0.0.1:1"' in elsewhere


def test_the_units_hand_over_what_the_gateway_takes() -> None:
    folder = ROOT / "contrib" / "systemd"
    groups = re.findall(r"^g ([\w-]+)", (folder / "sysusers.d" / "gateway.conf").read_text(), re.MULTILINE)
    for name in ("gateway", "gateway-admin", "gateway-metrics"):
        unit = dict(re.findall(r"^(\w+)=(.+)$", (folder / f"{name}.socket").read_text(), re.MULTILINE))
        assert (unit["FileDescriptorName"], unit["Service"], unit["SocketMode"]) == (name, "gateway.service", "0660")
        assert name in KINDS
        assert unit["SocketGroup"] in groups
        assert f" {name}.socket" in (folder / "install.sh").read_text(), "and it is installed"
