"""Peer credentials of real sockets."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from frontend.http.peercred import PeerCredentials, peer_credentials


def test_the_kernel_names_the_process_at_the_other_end(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(60)
        script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
        with subprocess.Popen([sys.executable, "-c", script, path]) as child:
            connected, _ = listener.accept()
            with connected:
                assert peer_credentials(connected) == PeerCredentials(child.pid, os.getuid(), os.getgid())


def test_tcp_has_no_credentials() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        connected, _ = listener.accept()
        with connected:
            assert peer_credentials(connected) is None
