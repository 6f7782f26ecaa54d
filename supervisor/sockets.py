"""Listening sockets: bound once, kept through every restart of a front, unlinked at the end.

A listener that the supervisor bound itself owns its path; one that a service manager holds
(supervisor/systemd/activation.py) owns none, and is used alike. Everything is close-on-exec; a front gets duplicates.
"""

import errno
import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path

from ipc.process.exits import Exit
from supervisor.refusal import Refused
from supervisor.settings.sections.addresses import split_address

BACKLOG = 1024
CLIENT_MODE = 0o660
"""Agents share a group with the gateway; who they are is a matter of peer credentials."""
ADMIN_MODE = 0o600
METRICS_MODE = 0o660
"""A scraper shares a group with the gateway: nothing else asks who it is."""
FOLDER_MODE = 0o755


class PortInUse(Refused):
    """The address is in use by another program."""


@dataclass
class Listener:
    """A listening socket. `kind`: client, admin, merged or metrics; `address`: a path or host:port."""

    kind: str
    address: str
    sock: socket.socket
    inode: tuple[int, int] | None = None
    """Device and inode of the socket file that we made."""
    stays_open: bool = False
    """A service manager holds this socket too: who connects when the gateway is gone waits for the next one."""

    def close(self) -> None:
        """Close, and unlink the path unless another process has put its own socket there."""
        self.sock.close()
        if self.inode is None:
            return
        try:
            status = os.lstat(self.address)
            if (status.st_dev, status.st_ino) == self.inode:
                os.unlink(self.address)
        except OSError:
            return


def listen_tcp(address: str, kind: str = "merged") -> Listener:
    """Listen on `ADDRESS:PORT`; port 0 picks a free one, which `address` of the result names. Raises Refused."""
    host, port = split_address(address)
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(Exit.UNAVAILABLE, f"{address} is in use by another program; choose another port.") from None
        code = Exit.NO_PERMISSION if isinstance(error, PermissionError) else Exit.UNAVAILABLE
        raise Refused(code, f"cannot listen on {address}: {error.strerror}.") from None
    port = sock.getsockname()[1]
    return Listener(kind, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", sock)


def free_port(host: str, taken: int) -> int | None:
    """A port near `taken` that is free at this moment; None if none of the next fifty is."""
    for port in range(taken + 1, min(taken + 51, 65536)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((host, port))
                sock.listen(1)
            except OSError:
                continue
            return port
    return None


def listen_unix(kind: str, path: str, mode: int) -> Listener:
    """Listen on a Unix socket; its folder is made when missing. A stale socket file is replaced. Raises Refused.

    SECURITY: the file is made without any permission for others and opened to `mode` after that.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(0o177)
    try:
        _make_folder(Path(path).parent)
        _remove_stale(path)
        sock.bind(path)
        status = os.lstat(path)
        listener = Listener(kind, path, sock, (status.st_dev, status.st_ino))
    except OSError as error:
        sock.close()
        code = Exit.UNAVAILABLE if error.errno == errno.EADDRINUSE else Exit.NO_PERMISSION
        raise Refused(code, f"cannot listen on {path}: {error.strerror or error}.") from None
    except Refused:
        sock.close()
        raise
    finally:
        os.umask(umask)
    try:
        os.chmod(path, mode)
        sock.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise Refused(Exit.NO_PERMISSION, f"cannot listen on {path}: {error.strerror}.") from None
    return listener


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    umask = os.umask(0o777 & ~FOLDER_MODE)
    try:
        folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
    finally:
        os.umask(umask)


def _remove_stale(path: str) -> None:
    """Unlink a socket without a listener. Raises Refused when it is no socket, or a process answers on it."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise Refused(Exit.UNAVAILABLE, f"{path} is there and is not a socket; move it away.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except BlockingIOError:
            pass  # A socket with a full backlog is in use.
    raise Refused(Exit.UNAVAILABLE, f"{path} is in use by another program.")
