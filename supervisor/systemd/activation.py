"""Listening sockets that a service manager has bound: taken over by their names, in the form of sd_listen_fds(3).

`gateway` is the agents' socket, `gateway-admin` the operators', `gateway-http` the TCP address of `listen_http_addr`,
`gateway-metrics` that of `[metrics]`; the name of a socket unit counts as well, with its `.socket`. The manager owns
such a socket: it and its backlog stay open when this gateway ends, and its path is never unlinked here. A socket that
no setting names, or that differs from the setting, is a start error: a gateway that listens elsewhere than its
configuration says would look as if it were down.
"""

import os
import socket
import stat
from collections.abc import Mapping

from ipc.process.exits import Exit
from ipc.settings import Settings
from supervisor.refusal import Refused
from supervisor.settings.sections.addresses import split_address
from supervisor.sockets import Listener

FIRST_DESCRIPTOR = 3
KINDS = {"gateway": "client", "gateway-admin": "admin", "gateway-http": "merged", "gateway-metrics": "metrics"}
"""Name -> kind of listener."""
NAMES = {kind: name for name, kind in KINDS.items()}
MAX_SOCKETS = 64


def activated(settings: Settings, environ: Mapping[str, str]) -> tuple[Listener, ...]:
    """The sockets that were handed to this process, each as the listener that a setting names. Raises Refused."""
    count = _count(environ)
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    listeners: dict[str, Listener] = {}
    taken = [_take(FIRST_DESCRIPTOR + index) for index in range(count)]
    try:
        for index, sock in enumerate(taken):
            name = names[index] if index < len(names) else ""
            listener = _listener(name, sock, settings)
            if listener.kind in listeners:
                raise _refused(name, "was handed over twice", "Give each socket unit one ListenStream=.")
            listeners[listener.kind] = listener
    except BaseException:
        for sock in taken:
            if sock is not None:
                sock.close()
        raise
    return tuple(listeners.values())


def _count(environ: Mapping[str, str]) -> int:
    """How many descriptors are for this process; what a parent was given is not."""
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return 0
    given = environ.get("LISTEN_FDS", "")
    if not given.isdecimal() or int(given) > MAX_SOCKETS:
        raise Refused(Exit.CONFIG, f"LISTEN_FDS={given!r} is no number of sockets; at most {MAX_SOCKETS} are taken.")
    return int(given)


def _take(descriptor: int) -> socket.socket | None:
    """The descriptor as a socket that no child inherits; None for anything else."""
    try:
        os.set_inheritable(descriptor, False)
        return socket.socket(fileno=descriptor)
    except OSError:
        return None


def _listener(name: str, sock: socket.socket | None, settings: Settings) -> Listener:
    kind = KINDS.get(name.removesuffix(".socket"))
    if kind is None:
        mend = f"Use FileDescriptorName= with one of {', '.join(KINDS)}."
        raise _refused(name, "was handed over, and no setting of the gateway is called so", mend)
    if sock is None or not _is_listening(sock):
        raise _refused(name, "is no listening stream socket", "Use ListenStream= and Accept=no.")
    setting, address = _configured(kind, settings)
    if address is None:
        raise _refused(name, f"was handed over, and {setting} is not set", f"Set {setting}, or remove the socket.")
    bound_address = _address_of(sock)
    if not _is_same(bound_address, address):
        mend = f"Make ListenStream= and {setting} the same."
        raise _refused(name, f'listens on {bound_address or "no address"}, and {setting} = "{address}"', mend)
    if address.startswith("/") and not _is_socket_file(address):
        mend = "Restart its socket unit; where it is kept by FDSTORE, set RuntimeDirectoryPreserve=restart."
        raise _refused(name, f"listens, but its file {address} is gone", mend)
    return Listener(kind, address, sock, stays_open=True)


def _refused(name: str, what: str, mend: str) -> Refused:
    return Refused(Exit.CONFIG, f'the socket "{name}" {what}. {mend}')


def _configured(kind: str, settings: Settings) -> tuple[str, str | None]:
    """The setting's name and its value."""
    match kind:
        case "client":
            return "listen_uds_path", settings.listen_uds_path
        case "admin":
            return "listen_admin_uds_path", settings.listen_admin_uds_path
        case "metrics":
            is_tcp = settings.metrics.listen is not None
            return "metrics.listen" if is_tcp else "metrics.listen_uds_path", settings.metrics.address
        case _:
            return "listen_http_addr", settings.listen_http_addr


def _is_listening(sock: socket.socket) -> bool:
    return sock.type == socket.SOCK_STREAM and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _address_of(sock: socket.socket) -> str:
    """A path or ADDRESS:PORT; "" for what the gateway can't listen on."""
    name = sock.getsockname()
    if sock.family == socket.AF_UNIX:
        return name if isinstance(name, str) else ""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_same(bound: str, configured: str) -> bool:
    if configured.startswith("/"):
        return os.path.realpath(bound) == os.path.realpath(configured) if bound.startswith("/") else False
    try:
        return split_address(bound) == split_address(configured)
    except ValueError:
        return False


def _is_socket_file(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False
