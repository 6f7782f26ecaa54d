"""Listening sockets: made, replaced when stale, refused when a server answers on them, unlinked at the end."""

import os
import socket
import stat
from pathlib import Path

import pytest

from ipc.process.exits import Exit
from supervisor.refusal import Refused
from supervisor.sockets import listen_tcp, listen_unix


def test_a_free_port_is_picked_and_named() -> None:
    listener = listen_tcp("127.0.0.1:0")
    try:
        port = int(listener.address.removeprefix("127.0.0.1:"))
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            pass
        assert not listener.sock.get_inheritable()
    finally:
        listener.close()


def test_a_port_in_use_is_refused_in_one_sentence() -> None:
    listener = listen_tcp("127.0.0.1:0")
    try:
        with pytest.raises(Refused) as caught:
            listen_tcp(listener.address)
    finally:
        listener.close()
    assert caught.value.code == Exit.UNAVAILABLE
    assert caught.value.sentence == f"{listener.address} is in use by another program; choose another port."


def test_an_address_that_is_not_of_this_machine_is_refused() -> None:
    with pytest.raises(Refused, match=r"cannot listen on 203\.0\.113\.1:80"):
        listen_tcp("203.0.113.1:80")


def test_the_folder_is_made_so_that_others_may_pass_and_the_socket_has_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "run" / "deep" / "gate.sock"
    umask = os.umask(0o077)
    try:
        listener = listen_unix("client", str(path), 0o660)
    finally:
        os.umask(umask)
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(path))
    finally:
        listener.close()
    assert not path.exists()


def test_a_socket_without_a_listener_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    listener = listen_unix("client", str(path), 0o600)
    listener.close()
    assert not path.exists()


def test_a_socket_with_a_listener_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "gate.sock")
    listener = listen_unix("client", path, 0o600)
    try:
        with pytest.raises(Refused, match="is in use by another program") as caught:
            listen_unix("client", path, 0o600)
        assert caught.value.code == Exit.UNAVAILABLE
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(path)
    finally:
        listener.close()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"
    path.write_text("precious")
    with pytest.raises(Refused, match="is not a socket"):
        listen_unix("client", str(path), 0o600)
    assert path.read_text() == "precious"


def test_a_folder_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot listen on") as caught:
        listen_unix("client", str(tmp_path / "file" / "gate.sock"), 0o600)
    assert caught.value.code == Exit.NO_PERMISSION


def test_a_socket_that_took_the_path_over_is_not_unlinked(tmp_path: Path) -> None:
    path = tmp_path / "gate.sock"
    listener = listen_unix("client", str(path), 0o600)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        listener.close()
        assert path.exists()
